// Package parts owns the processes that the bench needs beside the gateway's own: the load generator, the viewers, the
// service that allows everything, the backend that answers at once, and the client that makes the two reviews and nothing
// else. All are the bench's own program, started again under another name, so that the CPU of each can be told apart.
package parts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"hangar.io/glidepath/internal/devenv/process"
	"hangar.io/glidepath/test/bench/load"
	"hangar.io/glidepath/test/bench/view"
)

// prefix starts the first argument of a part.
const prefix = "bench-part:"

// The names of the parts.
const (
	partLoad    = "load"
	partReviews = "reviews"
	partNoop    = "noop"
	partStatic  = "static"
	partView    = "view"
)

// Main runs the part that the arguments name, if they name one, and says whether they did. A program that uses this package
// calls it first of all.
func Main(args []string) (ran bool, err error) {
	if len(args) == 0 || !strings.HasPrefix(args[0], prefix) {
		return false, nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	name, rest := strings.TrimPrefix(args[0], prefix), args[1:]
	switch {
	case name == partLoad && len(rest) == 0:
		runtime.GOMAXPROCS(1)
		return true, load.Main(ctx, os.Stdin, os.Stdout)
	case name == partReviews && len(rest) == 0:
		return true, reviewsMain(ctx, os.Stdin, os.Stdout)
	case name == partView && len(rest) == 0:
		return true, view.Main(ctx, os.Stdin, os.Stdout)
	case name == partNoop && len(rest) == 1:
		return true, serveNoop(ctx, rest[0])
	case name == partStatic && len(rest) == 2:
		return true, serveStatic(ctx, rest[0], rest[1])
	}
	return true, fmt.Errorf("no part is called %q with %d arguments", name, len(rest))
}

// Load runs the load generator and returns what it did. The context must leave it its time.
func Load(ctx context.Context, s load.Spec) (load.Result, error) {
	var r load.Result
	cpu, err := call(ctx, partLoad, s, &r)
	if err != nil {
		return r, err
	}
	r.CPU = cpu
	return r, r.Err()
}

// Noop starts the service that allows everything, on a Unix socket.
func Noop(ctx context.Context, socket, log string) (*process.Process, error) {
	return start(ctx, partNoop, log, func(context.Context) error {
		_, err := os.Stat(socket)
		return err
	}, socket)
}

// Static starts the backend that answers at once at host:port; dir is where PutList puts the list that it serves.
func Static(ctx context.Context, addr, dir string) (*process.Process, error) {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return start(ctx, partStatic, filepath.Join(dir, "static.log"), func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/", nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}, addr, dir)
}

func start(ctx context.Context, part, log string, ready func(context.Context) error, args ...string) (*process.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", part, err)
	}
	return process.Start(ctx, process.Spec{
		Name: part, Path: self, Args: append([]string{prefix + part}, args...), Log: log, Ready: ready,
	})
}

// call runs a part that takes its task on standard input and ends with an answer. It gives the CPU that the part has used.
func call(ctx context.Context, part string, task, answer any) (time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", part, err)
	}
	in, err := json.Marshal(task)
	if err != nil {
		return 0, fmt.Errorf("telling %s what to do: %w", part, err)
	}
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, self, prefix+part)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &complaints
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%s: %w: %s", part, errors.Join(err, context.Cause(ctx)), strings.TrimSpace(complaints.String()))
	}
	if err := json.Unmarshal(out.Bytes(), answer); err != nil {
		return 0, fmt.Errorf("reading the answer of %s: %w", part, err)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}
