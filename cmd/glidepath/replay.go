package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/alecthomas/kong"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/namespaces"
	"hangar.io/glidepath/authz/replay"
	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/kube"
	"hangar.io/glidepath/internal/rbac"
	"hangar.io/glidepath/internal/terminal"
)

type replayCommand struct {
	Lines []string `arg:"" placeholder:"FILE" help:"Files of audit lines; - reads standard input."`

	Manifests         []string `xor:"against" required:"" placeholder:"PATH" help:"Files or folders of RBAC manifests, applied to a scratch API server that is started for it."`
	ScratchKubeconfig string   `placeholder:"FILE" help:"With --manifests: an empty cluster to apply them to, in place of one that is started."`
	Live              bool     `xor:"against" required:"" help:"Ask the cluster of --kubeconfig as it is. Nothing is written to it."`
	Kubeconfig        string   `env:"KUBECONFIG" placeholder:"FILE" help:"With --live: how to reach the API server. Empty means the pod's ServiceAccount."`
	Groups            string   `placeholder:"FILE" help:"YAML that names the groups of callers who are no ServiceAccounts: user: [group, ...]."`
	MaxKinds          int      `default:"100000" help:"How many different calls are counted each. It bounds the memory."`
	Concurrency       int      `default:"16" help:"How many questions are asked at once."`
	Output            string   `short:"o" enum:"text,json" default:"text" help:"text or json."`

	stdin io.Reader // nil reads the process's own
}

// The exit codes: 0 for no difference.
const (
	exitDifferent = 1
	exitFailed    = 2
)

// exit is an error that ends the process with a code of its own.
type exit struct {
	error
	code int
}

// ExitCode is what kong ends the process with.
func (e exit) ExitCode() int { return e.code }

// Unwrap gives the error itself.
func (e exit) Unwrap() error { return e.error }

// Validate refuses what cannot be done, before anything is read.
func (c *replayCommand) Validate() error {
	switch {
	case c.ScratchKubeconfig != "" && len(c.Manifests) == 0:
		return errors.New("--scratch-kubeconfig goes with --manifests")
	case c.MaxKinds < 1 || c.Concurrency < 1 || c.Concurrency > 64:
		return errors.New("--max-kinds is at least 1, --concurrency from 1 to 64")
	}
	return nil
}

// Run decides past calls again and says which would be decided otherwise.
func (c *replayCommand) Run(k *kong.Kong) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report, err := c.replay(ctx)
	if err == nil {
		err = c.print(k.Stdout, report)
	}
	switch {
	case err != nil:
		return exit{err, exitFailed}
	case report.Incomplete:
		return exit{errors.New("not every call could be decided again"), exitFailed}
	case len(report.Differences) > 0:
		return exit{fmt.Errorf("%d different calls would be decided otherwise", len(report.Differences)), exitDifferent}
	}
	return nil
}

func (c *replayCommand) print(to io.Writer, r *replay.Report) error {
	out := []byte(r.Text())
	if c.Output == "json" {
		raw, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		out = append(terminal.JSON(raw), '\n')
	}
	_, err := to.Write(out)
	return err
}

func (c *replayCommand) replay(ctx context.Context) (*replay.Report, error) {
	var groups replay.Groups
	if c.Groups != "" {
		raw, err := os.ReadFile(c.Groups)
		if err != nil {
			return nil, fmt.Errorf("reading groups: %w", err)
		}
		if groups, err = replay.ReadGroups(raw); err != nil {
			return nil, err
		}
	}
	tally, err := c.read(ctx)
	if err != nil {
		return nil, err
	}
	cluster, found, done, err := c.against(ctx, tally)
	if err != nil {
		return nil, err
	}
	defer done()
	access, err := replay.NewAccess(cluster)
	if err != nil {
		return nil, err
	}
	defer access.Close()
	return replay.Judge(ctx, replay.Config{Access: access, Namespaces: found, Groups: groups, Concurrency: c.Concurrency}, tally)
}

func (c *replayCommand) read(ctx context.Context) (*replay.Tally, error) {
	tally := replay.NewTally(c.MaxKinds)
	for _, name := range c.Lines {
		if err := c.readOne(ctx, tally, name); err != nil {
			return nil, err
		}
	}
	return tally, tally.Check()
}

func (c *replayCommand) readOne(ctx context.Context, tally *replay.Tally, name string) error {
	if name == "-" {
		if c.stdin != nil {
			return tally.Read(ctx, name, c.stdin)
		}
		return tally.Read(ctx, name, os.Stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("reading audit lines: %w", err)
	}
	defer func() { _ = f.Close() }()
	return tally.Read(ctx, name, f)
}

// against gives the cluster that is asked, and what it knows of namespaces.
func (c *replayCommand) against(ctx context.Context, tally *replay.Tally) (cluster *rest.Config, found decision.Namespaces, done func(), err error) {
	if c.Live {
		cluster, err = kube.Config(kube.Options{Kubeconfig: c.Kubeconfig, UserAgent: "glidepath-replay"})
		if err != nil {
			return nil, nil, nil, err
		}
		started, err := namespaces.Start(ctx, cluster)
		if err != nil {
			return nil, nil, nil, err
		}
		return cluster, started, started.Close, nil
	}
	set, err := rbac.Read(c.Manifests)
	if err != nil {
		return nil, nil, nil, err
	}
	cluster, done, err = c.scratch(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := apply(ctx, cluster, set); err != nil {
		done()
		return nil, nil, nil, err
	}
	return cluster, tally.Namespaces(set.AllNamespaces()), done, nil
}

func apply(ctx context.Context, cluster *rest.Config, set *rbac.Set) error {
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return fmt.Errorf("connecting to the scratch cluster: %w", err)
	}
	if err := rbac.CheckScratch(ctx, client); err != nil {
		return err
	}
	return set.Apply(ctx, client)
}

// scratch gives an empty cluster, and what ends it.
func (c *replayCommand) scratch(ctx context.Context) (*rest.Config, func(), error) {
	if c.ScratchKubeconfig != "" {
		cluster, err := kube.Config(kube.Options{Kubeconfig: c.ScratchKubeconfig, UserAgent: "glidepath-replay"})
		return cluster, func() {}, err
	}
	dir, err := os.MkdirTemp("", "glidepath-replay-")
	if err != nil {
		return nil, nil, fmt.Errorf("starting a scratch API server: %w", err)
	}
	server, err := devenv.StartAPIServer(ctx, devenv.APIServerConfig{Dir: filepath.Join(dir, "kube")})
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, nil, fmt.Errorf("starting a scratch API server: %w", err)
	}
	return server.Admin, func() {
		server.Stop()
		_ = os.RemoveAll(dir)
	}, nil
}
