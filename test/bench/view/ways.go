package view

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// maxLine bounds an event and a list.
const maxLine = 64 << 20

// openTime is how long a stream may take to begin, when thousands come at once.
const openTime = time.Minute

// connect makes the client of all viewers. A stream has a connection to itself; watches share some, as those of a
// backend do that watches for each of its viewers.
func (c *crowd) connect() error {
	if c.spec.Way == Watch {
		cfg, err := clientcmd.BuildConfigFromFlags("", c.spec.Kubeconfig)
		if err != nil {
			return fmt.Errorf("reading the kubeconfig: %w", err)
		}
		transport, err := rest.TransportFor(cfg)
		if err != nil {
			return fmt.Errorf("connecting to the API server: %w", err)
		}
		c.client, c.base = &http.Client{Transport: transport}, []string{cfg.Host}
		return nil
	}
	c.base = c.spec.URLs
	c.client = &http.Client{Transport: &http.Transport{
		DisableCompression: c.spec.Way == Stream, MaxIdleConnsPerHost: c.spec.Viewers, WriteBufferSize: 2 << 10,
	}}
	return nil
}

func (c *crowd) close() { c.client.CloseIdleConnections() }

// look has a viewer look until ctx ends.
func (c *crowd) look(ctx context.Context, v *viewer) {
	shown := sync.OnceFunc(c.ready.Done)
	defer shown()
	var err error
	switch c.spec.Way {
	case Stream:
		err = v.stream(ctx, shown)
	case Poll:
		shown()
		err = v.poll(ctx)
	case Watch:
		err = v.watchAll(ctx, shown)
	default:
		err = fmt.Errorf("no way of looking is called %q", c.spec.Way)
	}
	if err != nil && ctx.Err() == nil {
		c.fail(err)
	}
}

// open asks for a path when it is its turn, and has each line read by take until that says that the viewer has been shown
// what there is, or the answer ends.
func (v *viewer) open(ctx context.Context, path string, shown func(), take func(line []byte) (there bool, err error)) error {
	select {
	case v.crowd.opening <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	opened := sync.OnceFunc(func() { <-v.crowd.opening; shown() })
	defer opened()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(openTime, func() { cancel(errors.New("nothing was shown in time")) })
	defer late.Stop()
	body, err := v.get(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 4<<10), maxLine)
	for lines.Scan() {
		there, err := take(lines.Bytes())
		if err != nil {
			return err
		}
		if there {
			late.Stop()
			opened()
		}
	}
	return fmt.Errorf("it ended: %w", errors.Join(lines.Err(), context.Cause(ctx)))
}

func (v *viewer) get(ctx context.Context, path string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+path, nil)
	if err != nil {
		return nil, err
	}
	for name, value := range v.crowd.spec.Headers {
		req.Header.Set(name, value)
	}
	resp, err := v.crowd.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	return resp.Body, nil
}

var (
	dataLine = []byte("data: ")
	idLine   = []byte("id: ")
	endLine  = []byte("event: end")
	reset    = []byte("event: reset")
)

func (v *viewer) stream(ctx context.Context, shown func()) error {
	v.begun = time.Now().UnixNano()
	return v.open(ctx, v.crowd.spec.Paths[0], shown, func(line []byte) (bool, error) {
		switch {
		case bytes.HasPrefix(line, dataLine):
			v.told(line)
			return true, nil
		case bytes.HasPrefix(line, idLine):
			v.id = string(line[len(idLine):])
		case bytes.Equal(line, endLine), bytes.Equal(line, reset):
			return false, fmt.Errorf("it was sent %q", line)
		}
		return false, nil
	})
}

// initialEnd is in the bookmark behind what there was when a watch began.
var initialEnd = []byte(`"k8s.io/initial-events-end":"true"`)

func (v *viewer) watchAll(ctx context.Context, shown func()) error {
	errs := make([]error, len(v.crowd.spec.Paths))
	var all, there sync.WaitGroup
	there.Add(len(errs))
	for i, path := range v.crowd.spec.Paths {
		all.Go(func() {
			errs[i] = v.open(ctx, path, sync.OnceFunc(there.Done), func(line []byte) (bool, error) {
				v.told(line)
				return bytes.Contains(line, initialEnd), nil
			})
		})
	}
	there.Wait()
	shown()
	all.Wait()
	return errors.Join(errs...)
}

// poll begins somewhere in the first period, so that viewers do not all ask at once.
func (v *viewer) poll(ctx context.Context) error {
	turn := time.NewTimer(rand.N(v.crowd.spec.Every)) //nolint:gosec // it spreads load and hides nothing
	defer turn.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-turn.C:
		}
		turn.Reset(v.crowd.spec.Every)
		body, err := v.get(ctx, v.crowd.spec.Paths[0])
		if err != nil {
			return err
		}
		list, err := io.ReadAll(io.LimitReader(body, maxLine))
		if err := errors.Join(err, body.Close()); err != nil {
			return err
		}
		v.shown(list)
	}
}
