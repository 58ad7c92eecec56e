package edge

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/bucket"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/extauthz"
	"hangar.io/glidepath/authz/namespaces"
	"hangar.io/glidepath/authz/operation"
	"hangar.io/glidepath/authz/review"
	"hangar.io/glidepath/authz/token"
	keys "hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/lifecycle"
)

// cluster knows everybody by the name that is their token. It lets them do
// everything but what is about the app secret.
type cluster struct{}

func (cluster) Authenticate(_ context.Context, tok token.Token, _ authn.Purpose) (*authn.Caller, error) {
	return authn.NewClusterCaller(authn.Facts{Username: tok.Secret()})
}

func (cluster) Allowed(_ context.Context, _ *authn.Caller, r review.Right, _ authn.Purpose) (bool, error) {
	return r.Namespace != "app-secret-cicd", nil
}

func (cluster) Resolve(app string) (namespaces.Resolution, error) {
	return namespaces.Resolution{Namespace: namespaces.Namespace{Name: "app-" + app + "-cicd", UID: "uid-of-" + app}}, nil
}

// startLimited starts an edge whose authz is the real one, but for the cluster
// behind it. The delegate is tower.
func startLimited(t *testing.T, s setup) *edge {
	t.Helper()
	e := start(t, s)
	dir := s.keys
	if dir == "" {
		dir = t.TempDir()
	}
	key := filepath.Join(dir, "key.pem")
	if err := keys.GenerateKeyPair(key, filepath.Join(dir, "public")); err != nil {
		t.Fatal(err)
	}
	signer, err := keys.LoadSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	operations, err := operation.NewTable(api.Operations())
	if err != nil {
		t.Fatal(err)
	}
	server, err := extauthz.NewServer(extauthz.Config{
		Operations: operations,
		Decider: decision.New(decision.Config{
			Authenticator: cluster{}, Access: cluster{}, Namespaces: cluster{}, Delegates: []string{"tower"},
		}),
		Signer: signer, Limits: bucket.New(bucket.Config{}), Metrics: extauthz.NewMetrics(prometheus.NewRegistry()),
	})
	if err != nil {
		t.Fatal(err)
	}
	e.authz.stop()
	l, err := lifecycle.ListenUnix(e.authz.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(l, nil)(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the other authz decides", func() bool {
		return e.get(t, "/v1/whoami", as("somebody")...).StatusCode == 200
	})
	return e
}

// as gives the headers of a caller, and of the person it acts for.
func as(caller string, person ...string) []string {
	out := []string{"Authorization", "Bearer " + caller}
	for _, p := range person {
		out = append(out, "X-Glidepath-On-Behalf-Of", p)
	}
	return out
}
