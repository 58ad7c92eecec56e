package devenv

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// prepareStreams takes the ports of the edges' internal listeners, which backends are told before any edge is started, and
// writes the deny-list.
func (g *Gateway) prepareStreams() error {
	for range g.cfg.Edges {
		port, err := g.port()
		if err != nil {
			return err
		}
		g.renewal = append(g.renewal, port.Addr())
	}
	g.DenyList = filepath.Join(g.cfg.Dir, "deny-list", "deny.yaml")
	if err := os.MkdirAll(filepath.Dir(g.DenyList), 0o700); err != nil {
		return fmt.Errorf("making a folder for the deny-list: %w", err)
	}
	if err := os.WriteFile(g.DenyList, []byte("version: \"1\"\n"), 0o600); err != nil {
		return fmt.Errorf("writing the deny-list: %w", err)
	}
	return nil
}

// RenewURLs are where backends have their streams renewed.
func (g *Gateway) RenewURLs() []string {
	var urls []string
	for _, addr := range g.renewal {
		urls = append(urls, "http://"+addr)
	}
	return urls
}

// renewFlag is the flag of a backend that says so.
func (g *Gateway) renewFlag() string { return "--authz-renew-url=" + strings.Join(g.RenewURLs(), ",") }

// SetDenyList puts another list in the place of the one in force.
func (g *Gateway) SetDenyList(list string) error {
	next := g.DenyList + ".next"
	if err := os.WriteFile(next, []byte(list), 0o600); err != nil {
		return fmt.Errorf("writing the deny-list: %w", err)
	}
	if err := os.Rename(next, g.DenyList); err != nil {
		return fmt.Errorf("writing the deny-list: %w", err)
	}
	return nil
}
