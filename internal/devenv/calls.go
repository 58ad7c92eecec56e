package devenv

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"hangar.io/glidepath/internal/fleet"
)

const callsTimeout = 30 * time.Second

// awaitCalls returns when GET /v1/whoami is answered through every edge: then each process of the path works.
func (g *Gateway) awaitCalls(ctx context.Context) error {
	g.cfg.Progress("waiting for the first call to be answered")
	caller, ok := fleet.LookupCaller(fleet.CallerReader)
	if !ok {
		return fmt.Errorf("the sample fleet has no caller %q", fleet.CallerReader)
	}
	token, err := fleet.Token(ctx, g.APIServer.Admin, caller, 10*time.Minute)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, callsTimeout, fmt.Errorf("no call was answered within %s", callsTimeout))
	defer cancel()
	for _, e := range g.Edges {
		if err := awaitWhoami(ctx, e, token); err != nil {
			return err
		}
	}
	return nil
}

func awaitWhoami(ctx context.Context, e *Edge, token string) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		last := whoami(ctx, e.URL, token)
		if last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (GET /v1/whoami at %s: %w; see %s)", context.Cause(ctx), e.URL, last, e.Authz.Log())
		case <-ticker.C:
		}
	}
}

func whoami(ctx context.Context, url, token string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/whoami", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	return nil
}
