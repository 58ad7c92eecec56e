package up

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/filelock"
	"hangar.io/glidepath/internal/devenv/process"
)

// supervisor owns the gateway's processes.
type supervisor struct {
	folder   folder
	port     int
	gateway  *devenv.Gateway
	extra    []devenv.Part // what is no part of the gateway: the simulator
	reporter *reporter

	mu    sync.Mutex // held while files are written
	ready bool
}

// Supervise runs the gateway until the context ends: it is the body of the process that Up starts. What ends by itself is
// started again.
func Supervise(ctx context.Context, dir string, port int) error {
	s := &supervisor{folder: folder(dir), port: port, reporter: &reporter{pipe: inheritedPipe()}}
	defer s.reporter.close()
	err := s.run(ctx)
	if err != nil {
		s.reporter.send(message{Error: err.Error()})
	}
	return err
}

func (s *supervisor) run(ctx context.Context) error {
	lock, err := filelock.Try(s.folder.lock())
	if errors.Is(err, filelock.ErrHeld) {
		return errors.New("another supervisor runs already")
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := s.save(); err != nil {
		return err
	}
	defer s.forget()
	stop, err := s.start(ctx)
	defer stop()
	if err != nil {
		return err
	}
	slog.Info("the gateway is ready")
	s.reporter.send(message{Ready: true})
	s.reporter.close()
	s.renew(ctx)
	slog.Info("the gateway is stopped")
	return nil
}

// start starts everything and writes the files that say so. The function it returns stops what was started, also after an error.
func (s *supervisor) start(ctx context.Context) (stop func(), err error) {
	nothing := func() {}
	s.gateway, err = devenv.StartGateway(ctx, devenv.GatewayConfig{
		Dir: s.folder.gateway(), Sockets: s.folder.sockets(), Port: s.port, Progress: s.reporter.progress, Restarted: s.restarted,
		Archives: true,
	})
	if err != nil {
		return nothing, err
	}
	simulator, err := s.startSimulator(ctx)
	if err != nil {
		return s.gateway.Stop, err
	}
	end := process.Keep(ctx, s.restarted, simulator)
	stop = func() {
		end()
		simulator.Stop()
		s.gateway.Stop()
	}
	variables, err := environment(ctx, s.gateway)
	if err != nil {
		return stop, err
	}
	if err := write(s.folder.env(), variables); err != nil {
		return stop, err
	}
	s.mu.Lock()
	s.extra, s.ready = []devenv.Part{{Name: simulator.Name(), Process: simulator, Addresses: []string{}}}, true
	s.mu.Unlock()
	return stop, s.save()
}

// startSimulator runs this program's command `simulate`, which gives the fleet's runs a life.
func (s *supervisor) startSimulator(ctx context.Context) (*process.Process, error) {
	s.reporter.progress("starting the simulator")
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("looking for this program: %w", err)
	}
	node := s.gateway.APIServer.Kubelet()
	return process.Start(ctx, process.Spec{
		Name: "simulator", Path: self,
		Args: []string{
			"simulate", "--kubeconfig=" + s.gateway.APIServer.Kubeconfig, "--kubelet-certificate=" + node.Certificate,
			"--kubelet-key=" + node.Key, "--kubelet-client-ca=" + node.ClientCA, "--kubelet-client=" + node.Client,
		},
		Log: filepath.Join(s.folder.gateway(), "logs", "simulator.log"),
	})
}

// renewal is how often the demo's tokens are made anew: those of people live an hour.
const renewal = 30 * time.Minute

// renew keeps the tokens in the demo's environment good until ctx ends.
func (s *supervisor) renew(ctx context.Context) {
	ticker := time.NewTicker(renewal)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		variables, err := environment(ctx, s.gateway)
		if err == nil {
			err = write(s.folder.env(), variables)
		}
		if err != nil && ctx.Err() == nil {
			slog.Error("the demo's tokens could not be renewed", "error", err)
		}
	}
}

// restarted is told of each process that ended by itself.
func (s *supervisor) restarted(p *process.Process, err error) {
	if err != nil {
		slog.Error("a process ended and could not be started again", "name", p.Name(), "error", err)
		return
	}
	slog.Warn("a process ended and was started again", "name", p.Name(), "pid", p.PID())
	if err := s.save(); err != nil {
		slog.Error("what runs could not be written down", "error", err)
	}
}

// save writes what runs, as far as it has been started. It is called again whenever a process has another id.
func (s *supervisor) save() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := state{Supervisor: identify(os.Getpid()), Port: s.port, Ready: s.ready}
	entries := []entry{{Name: "supervisor", PID: os.Getpid(), Addresses: []string{}}}
	if s.ready {
		// The provider that people sign in with is a part of this process.
		entries[0].Addresses = []string{s.gateway.Provider.Issuer}
		for _, part := range append(s.gateway.Parts(), s.extra...) {
			st.Children = append(st.Children, identify(part.Process.PID()))
			entries = append(entries, entry{Name: part.Name, PID: part.Process.PID(), Addresses: part.Addresses})
		}
		if err := writeJSON(s.folder.processes(), entries); err != nil {
			return err
		}
	}
	return writeJSON(s.folder.state(), st)
}

func (s *supervisor) forget() {
	if err := s.folder.forget(); err != nil {
		slog.Error("what ran could not be forgotten", "error", err)
	}
}
