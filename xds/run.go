package xds

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/lifecycle"
	"hangar.io/glidepath/internal/telemetry"
	"hangar.io/glidepath/xds/policy"
	"hangar.io/glidepath/xds/server"
)

// Options are those of the process.
type Options struct {
	EdgeOptions
	Remote        RemoteOptions `embed:""`
	Socket        string        `name:"socket" env:"XDS_SOCKET" default:"/run/glidepath/xds.sock" help:"Unix socket that Envoy gets its configuration from."`
	Policy        string        `name:"policy" env:"POLICY_FILE" help:"Route policy file, watched for changes. Empty is every default."`
	StateDir      string        `name:"state-dir" env:"STATE_DIR" required:"" help:"Folder that keeps the last good configuration."`
	MetricsListen string        `name:"metrics-listen" env:"METRICS_LISTEN" default:":9091" help:"Address of /metrics."`
	ProbeListen   string        `name:"probe-listen" env:"PROBE_LISTEN" default:":8082" help:"Address of /healthz and /readyz."`
}

// Validate reports every fault of o together.
func (o Options) Validate() error {
	errs := []error{o.EdgeOptions.Validate(), o.Remote.validate()}
	if o.StateDir == "" {
		errs = append(errs, errors.New("--state-dir: missing"))
	}
	if _, err := parseSocket("--socket", o.Socket); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Run is the process: it returns when ctx ends, or with what keeps it from
// serving any configuration at all.
func Run(ctx context.Context, opts Options) error {
	if err := opts.Validate(); err != nil {
		return err
	}
	if opts.Remote.Listen == "" { // else the files are where the Envoys are
		if err := opts.CheckFiles(); err != nil {
			return err
		}
	}
	registry := telemetry.NewRegistry()
	store, err := server.NewStore(opts.StateDir)
	if err != nil {
		return err
	}
	store.Only(opts.usable)
	srv := server.New(store, server.NewMetrics(registry), slog.Default())
	s := newSupplier(api.Operations(), opts.EdgeOptions, srv, registry, slog.Default())

	remoteTLS, err := opts.Remote.tlsConfig()
	if err != nil {
		return err
	}
	reload, err := s.begin(ctx, opts.Policy)
	if err != nil {
		return err
	}
	defer reload.close()
	l, err := listen(opts)
	if err != nil {
		return err
	}
	probes := http.NewServeMux()
	lifecycle.Probes(probes, srv.Ready)
	tasks := []lifecycle.Task{
		func(ctx context.Context) error { return srv.Serve(ctx, l.socket) },
		lifecycle.Serve(l.metrics, lifecycle.MetricsHandler(registry)),
		lifecycle.Serve(l.probes, probes),
		reload.run,
	}
	if l.remote != nil {
		tasks = append(tasks, func(ctx context.Context) error { return srv.ServeTLS(ctx, l.remote, remoteTLS) })
	}
	return lifecycle.Run(ctx, tasks...)
}

// reload is the watch on the policy file, if there is one.
type reload struct {
	run   lifecycle.Task
	close func()
}

// begin serves the first configuration. The watch is open before the file is
// read, so that no change in between is missed.
func (s *supplier) begin(ctx context.Context, file string) (reload, error) {
	if file == "" {
		none := reload{run: func(context.Context) error { return nil }, close: func() {}}
		return none, s.first(ctx, PolicyFile{}, nil)
	}
	w, err := policy.Watch(file)
	if err != nil {
		return reload{}, err
	}
	data, err := w.Read()
	if err := s.first(ctx, PolicyFile{Name: file, Data: data}, err); err != nil {
		return reload{}, errors.Join(err, w.Close())
	}
	run := func(ctx context.Context) error {
		return w.Run(ctx, func() {
			data, err := w.Read()
			s.next(ctx, PolicyFile{Name: file, Data: data}, err)
		})
	}
	return reload{run: run, close: func() { _ = w.Close() }}, nil
}

// listeners are opened together, so that a port in use ends the process before
// it has told anyone anything.
type listeners struct {
	socket, metrics, probes net.Listener
	remote                  net.Listener // nil unless Envoys of other pods are served
}

func listen(opts Options) (l listeners, err error) {
	err = lifecycle.OpenAll(
		lifecycle.Opening{To: &l.metrics, Open: lifecycle.Listen, Addr: opts.MetricsListen},
		lifecycle.Opening{To: &l.probes, Open: lifecycle.Listen, Addr: opts.ProbeListen},
		lifecycle.Opening{To: &l.socket, Open: lifecycle.ListenUnix, Addr: opts.Socket},
		lifecycle.Opening{To: &l.remote, Open: lifecycle.Listen, Addr: opts.Remote.Listen},
	)
	return l, err
}
