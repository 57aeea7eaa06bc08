package agent

import (
	"fmt"
	"slices"
	"strings"

	"jacobi/configs"
	"jacobi/internal/net/roster"
	"jacobi/internal/observe/stats"
)

// passed are the variables that a launcher may set for ranks of an agent, besides the keys of the run file. They change
// how a rank computes; none makes it load a library or read a file. docs/security.md lists them.
var passed = []string{
	"CUDA_DEVICE_ORDER", "CUDA_FORCE_PTX_JIT", "CUDA_LAUNCH_BLOCKING", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
	"CUDA_VISIBLE_DEVICES", "GOGC", "GOMAXPROCS", "GOMEMLIMIT",
}

// environ returns the variables that a launcher sent, for a rank of this node. own, the node's access to the server,
// replaces the launcher's.
func environ(sent []string, own configs.NATS) ([]string, error) {
	keys := map[string]bool{stats.Env: true}
	for _, name := range roster.Tasks() {
		keys[name] = true
	}
	keys[configs.EnvJob] = true
	servers, err := configs.Environ(configs.Planned{Config: configs.Config{NATS: own}})
	if err != nil {
		return nil, err
	}
	for _, v := range servers {
		name, _, _ := strings.Cut(v, "=")
		keys[name] = true
	}
	env := make([]string, 0, len(sent))
	for _, v := range sent {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case ofServer(name):
		case keys[name], slices.Contains(passed, name):
			env = append(env, v)
		default:
			return nil, fmt.Errorf("variable %s: an agent accepts only the keys of a run file and %s", name,
				strings.Join(passed, ", "))
		}
	}
	for _, v := range servers {
		if name, _, _ := strings.Cut(v, "="); ofServer(name) {
			env = append(env, v)
		}
	}
	return env, nil
}

// ofServer reports whether a variable says how the server is reached. An agent has its own values for these. The secret
// file is not among them: it belongs to the run.
func ofServer(name string) bool {
	return strings.HasPrefix(name, "JACOBI_NATS_") && name != "JACOBI_NATS_SECRET_FILE"
}
