package chaos_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/process"
	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/test/chaos/containers"
)

// The contract is in the program: an image that holds nothing else serves it, to the byte.
//
// rule: R038
func TestAnImageOfNothingButTheProgramDoesItsWork(t *testing.T) {
	needsDocker(t)
	whole := t
	gw, err := devenv.StartGateway(t.Context(), devenv.GatewayConfig{Dir: t.ArtifactDir(), Static: true, APIServer: apiServer})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gw.Stop)
	caller, _ := fleet.LookupCaller(fleet.CallerReader)
	token, err := fleet.Token(t.Context(), apiServer.Admin, caller, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	contract, err := os.ReadFile(filepath.Join("..", "..", "api", "glidepath-contract.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		process *process.Process
		path    string
		right   func([]byte) error
	}{
		{"authz", gw.Edges[0].Authz, "/v1/contract", func(body []byte) error {
			if !bytes.Equal(body, contract) {
				return fmt.Errorf("another contract: %.200s", body)
			}
			return nil
		}},
		{"livehub", gw.Livehubs[0].Process, "/v1/apps/" + app + "/live", onlyFrom(namespace)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.process.Stop()
			if _, err := fetch(t, gw.URL+tc.path, token); err == nil {
				t.Fatal("it is answered while nobody is there")
			}
			c := inPlaceOf(whole, gw, tc.process, tc.name) // the next one needs it too
			eventually(t, "the container answers", func() error {
				body, err := fetch(t, gw.URL+tc.path, token)
				if err != nil {
					return fmt.Errorf("%w; its log: %s", err, c.Logs(t.Context()))
				}
				return tc.right(body)
			})
			files, err := c.Files(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if want := []string{"/" + tc.name}; !slices.Equal(files, want) {
				t.Errorf("the container holds %v, not %v", files, want)
			}
		})
	}
}

// inPlaceOf runs a program of the gateway in a container as it was run here, with nothing of this machine but its keys,
// the deny-list and the sockets of its edge.
func inPlaceOf(t *testing.T, gw *devenv.Gateway, p *process.Process, name string) *containers.Container {
	t.Helper()
	image, err := docker.Build(t.Context(), containers.Image{Name: name, Program: gw.Binary(name)})
	if err != nil {
		t.Fatal(err)
	}
	var binds []string
	for _, dir := range []string{filepath.Dir(gw.IdentityKeysDir()), filepath.Dir(gw.DenyList), gw.Edges[0].Sockets} {
		binds = append(binds, dir+":"+dir)
	}
	c, err := docker.Run(t.Context(), containers.Spec{
		Name: name, Image: image, Args: p.Args(), Binds: binds, User: fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Remove(cleanupContext(t)); err != nil {
			t.Error(err)
		}
	})
	return c
}

// fetch gives the body of a 200.
func fetch(t *testing.T, url, token string) ([]byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.200s", res.StatusCode, body)
	}
	return body, err
}
