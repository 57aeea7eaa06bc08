package proctest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestPortIsOfOneProcess has processes take thousands of the ports at once: none is given to two of them, or twice to
// one. After a test its ports are free.
func TestPortIsOfOneProcess(t *testing.T) {
	const processes, ports = 4, 1500
	if os.Getenv("PORTS") != "" {
		for range ports {
			fmt.Println("port", Port(t))
		}
		fmt.Println("all")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the test has read those of all
		return
	}
	given := map[string]bool{}
	var ends []func()
	for range processes {
		cmd := exec.Command(os.Args[0], "-test.run=^TestPortIsOfOneProcess$")
		cmd.Env = append(os.Environ(), "PORTS=take")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, func() { in.Close(); _ = cmd.Wait() })
		var line, port string
		for line != "all" {
			if _, err := fmt.Fscanln(out, &line, &port); err != nil && line != "all" {
				t.Fatal(err)
			}
			if line == "port" && given[port] {
				t.Errorf("port %s is given twice", port)
			}
			given[port] = true
		}
	}
	if len(given) != processes*ports {
		t.Errorf("%d ports, want %d", len(given), processes*ports)
	}
	for _, end := range ends {
		end()
	}
	at := ""
	t.Run("ends", func(t *testing.T) { at = fmt.Sprintf("@jacobi-test-port-%d", Port(t)) })
	l, err := net.Listen("unix", at)
	if err != nil || !strings.HasPrefix(at, "@") {
		t.Fatalf("the port of a test that has ended is kept: %v", err)
	}
	l.Close()
}
