package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/ports"
	"hangar.io/glidepath/internal/devenv/process"
	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/test/bench/load"
	"hangar.io/glidepath/test/bench/parts"
)

// tokenLife is longer than any bench.
const tokenLife = time.Hour

// World is the gateway that is measured and what it is compared with.
type World struct {
	*devenv.Gateway

	options Options
	// bare is an edge of the same configuration that asks noop, which allows everything.
	bare *devenv.Edge
	noop *process.Process
	// static is the backend of what has none yet, and the collector.
	static *process.Process
	// reader may read everything, operator may write.
	reader, operator string
	// collector is the flag of a process that says where its spans go.
	collector string
	// lives is the gateway of the live rows, once one of them was measured.
	lives *lives
	// archives is that of the rows of archived runs.
	archives *archives
	// staticAddr is host:port of static.
	staticAddr string

	undo []func()
}

// start starts everything that any row needs.
func start(ctx context.Context, o Options) (_ *World, err error) {
	w := &World{options: o}
	defer func() {
		if err != nil {
			w.stop()
		}
	}()
	port, err := ports.Reserve()
	if err != nil {
		return nil, err
	}
	w.staticAddr = port.Addr()
	w.undo = append(w.undo, port.Release)
	if w.static, err = parts.Static(ctx, port.Addr(), o.Dir); err != nil {
		return nil, err
	}
	w.undo = append(w.undo, w.static.Stop)
	w.collector = "--otlp-endpoint=http://" + port.Addr()
	w.Gateway, err = devenv.StartGateway(ctx, devenv.GatewayConfig{
		Dir: filepath.Join(o.Dir, "gateway"), PlannedTo: port.Addr(), Race: o.Race, Progress: o.Progress,
		// Spans are made and sent, as where somebody collects them.
		Args: map[string][]string{"xds": {w.collector}, "authz": {w.collector}, "livehub": {w.collector}},
	})
	if err != nil {
		return nil, err
	}
	w.undo = append(w.undo, w.Stop)
	if err := w.startBare(ctx); err != nil {
		return nil, err
	}
	if w.reader, err = w.token(ctx, fleet.CallerReader); err != nil {
		return nil, err
	}
	w.operator, err = w.token(ctx, fleet.CallerOperator)
	return w, err
}

func (w *World) stop() {
	for i := range w.undo {
		w.undo[len(w.undo)-1-i]()
	}
	w.undo = nil
}

// startBare starts the service that allows everything and the edge that asks it.
func (w *World) startBare(ctx context.Context) (err error) {
	socket := filepath.Join(w.Edges[0].Sockets, "noop.sock")
	if w.noop, err = parts.Noop(ctx, socket, filepath.Join(w.options.Dir, "noop.log")); err != nil {
		return err
	}
	// Before the gateway: its edge would complain about a service that is gone.
	w.undo = append(w.undo, w.noop.Stop)
	w.bare, err = w.StartEdgeWith(ctx, socket)
	return err
}

func (w *World) token(ctx context.Context, caller string) (string, error) {
	c, ok := fleet.LookupCaller(caller)
	if !ok {
		return "", fmt.Errorf("the sample fleet has no caller %q", caller)
	}
	return fleet.Token(ctx, w.APIServer.Admin, c, tokenLife)
}

// runs is how often each subject of a comparison runs: n times, or once in a quick bench.
func (w *World) runs(n int) int {
	if w.options.Quick {
		return 1
	}
	return n
}

// duration is how long one run takes: d, or a moment in a quick bench.
func (w *World) duration(d time.Duration) time.Duration {
	if w.options.Quick {
		return 100 * time.Millisecond
	}
	return d
}

// connections is how many are used at once: n, or a few in a quick bench.
func (w *World) connections(n int) int {
	if w.options.Quick {
		return min(n, 4)
	}
	return n
}

// get is a load of GETs by the reader.
func (w *World) get(edge *devenv.Edge, path string, connections int, d time.Duration) load.Spec {
	return load.Spec{
		Method: "GET", Addr: address(edge), Path: path, Headers: map[string]string{"Authorization": "Bearer " + w.reader},
		Connections: w.connections(connections), Duration: w.duration(d), Status: 200,
	}
}
