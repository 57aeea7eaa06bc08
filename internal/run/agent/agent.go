package agent

import (
	"context"
	"crypto/ecdh"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/zap"

	"jacobi/configs"
	"jacobi/internal/base/version"
	"jacobi/internal/net/wire"
	"jacobi/internal/run/launch"
)

const (
	// maxPast bounds the ended sessions that an agent remembers, so that they cannot be replayed.
	maxPast = 1 << 16
	// maxSessions bounds the sessions that are open at one time.
	maxSessions = 1 << 10

	joinTimeout = 3 * time.Second
	checkTime   = 100 * time.Millisecond
)

// Options configure an agent.
type Options struct {
	Conn   *wire.Conn   // connection whose run id is Group
	Server configs.NATS // how the ranks of this node reach the server
	Host   string
	Slots  int
	What   string // what the slots are: "2 GPUs", "8 cores"
	Path   string // the ranks' program
	// Prepare completes the spec of ranks or refuses those that this node cannot run. It may be nil.
	Prepare launch.Prepare
	Log     *zap.Logger
}

// Agent offers the slots of this node at a NATS server.
type Agent struct {
	Options
	offer   Offer
	key     *ecdh.PrivateKey
	cancel  context.CancelCauseFunc
	running sync.WaitGroup

	mu       sync.Mutex
	free     int
	by       map[string]int // slots taken, by run
	sessions map[string]*session
	past     []string // ids of ended sessions, the latest last
}

// session is one launcher's ranks on this node.
type session struct {
	conn   *wire.Conn
	stream *wire.Stream
}

// Run offers the slots until ctx ends or the server refuses, and returns the cause. It then kills the ranks that run.
func Run(ctx context.Context, o Options) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	a := &Agent{Options: o, key: key, free: o.Slots, by: map[string]int{}, sessions: map[string]*session{}}
	a.offer = Offer{ID: publicID(key), Host: o.Host, PID: os.Getpid(), Version: version.String(), Slots: o.Slots,
		What: o.What}
	ctx, a.cancel = context.WithCancelCause(ctx)
	defer a.cancel(nil)
	sub, err := o.Conn.Raw().Subscribe(toAgent(a.offer.ID, "*"), func(m *nats.Msg) { a.receive(ctx, m) })
	if err != nil {
		return err
	}
	service, err := a.join(ctx)
	if err == nil {
		<-ctx.Done()
		err = context.Cause(ctx)
	}
	a.mu.Lock() // a session that is being opened sees the end, or is ended with the others
	a.cancel(err)
	a.mu.Unlock()
	a.running.Wait()
	if service != nil {
		_ = service.Stop() // fails only on a lost connection, which ends the service anyway
	}
	_ = sub.Unsubscribe()
	return err
}

// join registers the agent as a service of the server. It returns once the agent has received an offer of its own.
func (a *Agent) join(ctx context.Context) (micro.Service, error) {
	service, err := micro.AddService(a.Conn.Raw(), micro.Config{
		Name: ServiceName, Version: serviceVersion, Description: "starts ranks of jacobi runs on this node",
		Metadata: map[string]string{
			"host": a.Host, "slots": fmt.Sprint(a.Slots), "what": a.What, "program": a.offer.Version,
			"agent": a.offer.ID,
		},
		StatsHandler: func(*micro.Endpoint) any {
			a.mu.Lock()
			defer a.mu.Unlock()
			return map[string]any{"free": a.free, "slots": a.Slots}
		},
	})
	if err == nil {
		err = service.AddEndpoint("offer", micro.HandlerFunc(a.answer), micro.WithEndpointSubject(offerSubject),
			micro.WithEndpointQueueGroupDisabled())
	}
	if err != nil {
		return service, fmt.Errorf("join the services of the server: %w", err)
	}
	for begin := time.Now(); ; {
		offers, err := List(ctx, a.Conn, checkTime)
		if err != nil {
			return service, err
		}
		if slices.ContainsFunc(offers, func(o Offer) bool { return o.ID == a.offer.ID }) {
			break
		}
		if time.Since(begin) > joinTimeout {
			return service, errors.New("the agent does not receive its own messages: its user needs the subjects " +
				"jacobi.> (and $SRV.> to be seen as a service)")
		}
	}
	a.Log.Info("node agent", zap.String("host", a.Host), zap.String("id", a.offer.ID[:shortID]),
		zap.Int("slots", a.Slots), zap.String("what", a.What), zap.String("nats", a.Conn.Server()),
		zap.Bool("secret", a.Conn.Sealed()))
	if warning := openTo(a.Conn); warning != "" {
		a.Log.Warn(warning)
	}
	return service, nil
}

// answer sends the agent's offer to a launcher.
func (a *Agent) answer(r micro.Request) {
	if _, err := a.Conn.Unseal(r.Subject(), r.Reply(), r.Data()); err != nil {
		a.Log.Debug("refused a question", zap.Error(err))
		return
	}
	a.mu.Lock()
	o := a.offer
	o.Free = a.free
	a.mu.Unlock()
	if data, err := json.Marshal(o); err == nil {
		_ = a.Conn.Publish(r.Reply(), data) // if the offer is lost, the launcher retries
	}
}

// receive handles a message of a launcher.
func (a *Agent) receive(ctx context.Context, m *nats.Msg) {
	launcher := strings.Split(m.Subject, ".")[3]
	a.mu.Lock()
	s := a.sessions[launcher]
	a.mu.Unlock()
	var conn *wire.Conn
	var err error
	if s != nil {
		conn = s.conn
	} else if conn, err = sealSession(a.Conn, a.key, launcher, a.offer.ID, launcher); err != nil {
		return
	}
	data, err := conn.Unseal(m.Subject, m.Reply, m.Data)
	var f wire.Frame
	if err == nil {
		f, err = wire.ParseFrame(data)
	}
	if err != nil {
		a.Log.Debug("refused a message", zap.String("subject", m.Subject), zap.Error(err))
		return
	}
	if s == nil {
		if s = a.begin(ctx, launcher, conn, &f); s == nil {
			return
		}
	}
	s.stream.Receive(f)
}

// begin opens the session of a launcher whose first frame is f. It returns nil if f opens no session.
func (a *Agent) begin(ctx context.Context, launcher string, conn *wire.Conn, f *wire.Frame) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &session{conn, wire.NewStream(wire.StreamOptions{Conn: conn, Subject: toLauncher(a.offer.ID, launcher)})}
	if !f.First() || ctx.Err() != nil || len(a.sessions) >= maxSessions || slices.Contains(a.past, launcher) {
		// A launcher that leaves a session that is not open still waits for a goodbye.
		if f.Goodbye() {
			s.stream.Close("the agent has no such session")
		}
		return nil
	}
	a.sessions[launcher] = s
	a.running.Go(func() {
		a.attend(ctx, s.stream)
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.sessions, launcher)
		if a.past = append(a.past, launcher); len(a.past) > maxPast {
			a.past = a.past[1:]
		}
	})
	return s
}

// attend serves one launcher until its ranks have ended.
func (a *Agent) attend(ctx context.Context, s *wire.Stream) {
	orders := make(chan launch.Order)
	// Orders end with the launcher, not with ctx: Serve ends with the cause of ctx.
	serving, done := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(orders)
		each(serving, s, func(o launch.Order) bool {
			select {
			case orders <- o:
				return true
			case <-serving.Done():
				return false
			}
		})
	}()
	var run string
	taken := 0
	err := launch.Serve(ctx, orders, func(n launch.News) error { return send(serving, s, n) },
		func(ctx context.Context, spec *launch.Spec) (func(), error) {
			prepared, err := a.prepare(ctx, spec)
			if err != nil {
				return nil, err
			}
			run, taken = spec.Ranks[0].RunID, len(spec.Ranks)
			a.Log.Info("ranks start", zap.String("run", run), zap.Int("ranks", taken))
			return prepared, nil
		})
	why := ""
	if err != nil {
		why = err.Error()
	} else {
		last, cancel := context.WithTimeout(serving, lastWords)
		_ = s.Flush(last) // the launcher may have left
		cancel()
	}
	done()
	s.Close(why)
	if taken > 0 {
		a.release(run, taken)
		a.Log.Info("ranks ended", zap.String("run", run), zap.Int("ranks", taken), zap.String("why", why))
	}
}

// passed are the variables that a launcher may set for ranks of an agent, besides the keys of the run file. They change
// how a rank computes; none makes it load a library or read a file. docs/security.md lists them.
var passed = []string{
	"CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_DEVICE_ORDER", "CUDA_FORCE_PTX_JIT", "CUDA_LAUNCH_BLOCKING",
	"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_VISIBLE_DEVICES", "GOGC", "GOMAXPROCS", "GOMEMLIMIT",
}

// environ returns the variables that a launcher sent, for a rank of this node. own, the node's access to the server,
// replaces the launcher's. The secret is that of the run.
func environ(sent []string, own configs.NATS) ([]string, error) {
	for _, v := range sent {
		if name, _, _ := strings.Cut(v, "="); name != configs.EnvJob && !slices.Contains(passed, name) {
			return nil, fmt.Errorf("variable %s: an agent takes keys from run files and flags, and of variables only "+
				"%s", name, strings.Join(passed, ", "))
		}
	}
	return configs.Amend(sent, func(s *configs.Start) {
		own.SecretFile = s.NATS.SecretFile
		s.NATS = own
	})
}
