package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"hangar.io/glidepath/test/bench/figures"
)

const rowRevokedStream = "revoked_stream_s"

// measureRevokedStreams takes their right or token away from many callers at once while each has a stream open, and gives
// the longest time in which one stayed open. Those who are denied by list come after: a change of the list has every stream
// decided again. A quick bench has these alone, which is a matter of seconds.
func measureRevokedStreams(ctx context.Context, w *World) ([]figures.Figure, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, revokedLimit, errors.New("streams are still open"))
	defer cancel()
	k, err := fillLog(ctx, w.APIServer)
	if err != nil {
		return nil, err
	}
	defer k.Stop()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: revokedTrials}}
	defer client.CloseIdleConnections()
	worst := map[string]time.Duration{}
	ways := revocations()
	if !w.options.Quick {
		if worst, err = w.revokeStreams(ctx, client, ways, revokedTrials, "stream"); err != nil {
			return nil, err
		}
	}
	listed, err := w.revokeStreams(ctx, client, []revocation{{name: "list", take: deny}}, 1, "listed")
	if err != nil {
		return nil, err
	}
	lines := []figures.Figure{{Name: rowRevokedStream, Value: max(worst[""], listed[""]).Seconds()}}
	for _, way := range ways {
		if took, measured := worst[way.name]; measured {
			lines = append(lines, figures.Figure{Name: "revoked_stream_" + way.name + "_s", Value: took.Seconds()})
		}
	}
	return append(lines, figures.Figure{Name: "revoked_stream_list_s", Value: listed[""].Seconds()}), nil
}

// deny puts a caller on the deny-list, and nobody else.
func deny(_ context.Context, w *World, name string) error {
	return w.SetDenyList("version: \"1\"\nusers: [\"system:serviceaccount:" + revokedIn + ":" + name + "\"]\n")
}

// revokeStreams opens a stream for each trial, takes from all what they have when all are open, and gives the longest that
// one stayed open for each way, and of all under the empty name.
func (w *World) revokeStreams(ctx context.Context, client *http.Client, ways []revocation, trials int, prefix string) (map[string]time.Duration, error) {
	name := func(i int) string { return fmt.Sprintf("%s-%d", prefix, i) }
	streams, errs := make([]io.ReadCloser, trials), make([]error, trials)
	each(trials, func(i int) { streams[i], errs[i] = w.openStream(ctx, client, ways[i%len(ways)], name(i)) })
	defer func() {
		for _, s := range streams {
			if s != nil {
				_ = s.Close()
			}
		}
	}()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	took := make([]time.Duration, trials)
	each(trials, func(i int) {
		began := time.Now()
		if errs[i] = ways[i%len(ways)].take(ctx, w, name(i)); errs[i] != nil {
			return
		}
		// It is broken off, so that the log does not look whole.
		if _, err := io.Copy(io.Discard, streams[i]); err == nil || ctx.Err() != nil {
			errs[i] = fmt.Errorf("a stream whose caller lost its %s: %w", ways[i%len(ways)].name, errors.Join(errNotBrokenOff, context.Cause(ctx)))
		}
		took[i] = time.Since(began)
	})
	worst := map[string]time.Duration{}
	for i, d := range took {
		way := ways[i%len(ways)].name
		worst[way], worst[""] = max(worst[way], d), max(worst[""], d)
	}
	return worst, errors.Join(errs...)
}

var errNotBrokenOff = errors.New("it was not broken off")

// openStream makes a caller and has it follow a log.
func (w *World) openStream(ctx context.Context, client *http.Client, way revocation, name string) (io.ReadCloser, error) {
	token, err := w.newReader(ctx, way, name)
	if err != nil {
		return nil, fmt.Errorf("making a caller: %w", err)
	}
	if _, err := w.poll(ctx, client, token, true); err != nil {
		return nil, fmt.Errorf("waiting until a caller may read: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL+followedPath, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("opening a stream: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("opening a stream: status %d", resp.StatusCode)
	}
	return resp.Body, nil
}

// each calls f for all numbers below n at once, and returns when all have returned.
func each(n int, f func(int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}
