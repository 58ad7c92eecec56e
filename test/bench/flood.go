package bench

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	floodRate        = 1000 // calls a second
	floodConnections = 32
	floodTick        = 10 * time.Millisecond
)

// flood calls the edge floodRate times a second, half of it for a write, each time with another token, until ctx ends. It gives
// the rate that came to pass: an edge that is too slow for more gets less.
func flood(ctx context.Context, url string, token func() string) (perSecond float64, err error) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: floodConnections}}
	defer client.CloseIdleConnections()
	calls := make(chan int, floodRate)
	var (
		workers sync.WaitGroup
		once    sync.Once
		mu      sync.Mutex
		sent    int
	)
	for range floodConnections {
		workers.Go(func() {
			for n := range calls {
				if e := floodCall(ctx, client, url, token(), n); e != nil && ctx.Err() == nil {
					once.Do(func() { err = e })
				}
				mu.Lock()
				sent++
				mu.Unlock()
			}
		})
	}
	began := time.Now()
	pace(ctx, calls)
	workers.Wait()
	return float64(sent) / time.Since(began).Seconds(), err
}

// pace sends a number for each call that is due, and closes calls when ctx ends. What finds no room is left out.
func pace(ctx context.Context, calls chan<- int) {
	defer close(calls)
	tick := time.NewTicker(floodTick)
	defer tick.Stop()
	for n := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for range int(floodRate * floodTick / time.Second) {
			select {
			case calls <- n:
				n++
			default:
			}
		}
	}
}

func floodCall(ctx context.Context, client *http.Client, url, token string, n int) error {
	method, path := http.MethodGet, cachedPath
	if n%2 == 0 {
		method, path = http.MethodPost, cancelPath
	}
	req, err := http.NewRequestWithContext(ctx, method, url+path, nil)
	if err != nil {
		return err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16)); err != nil {
		return err
	}
	// 502 is for names of keys that nobody knows, of which too many are sent.
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusBadGateway {
		return unexpected(resp.StatusCode)
	}
	return nil
}
