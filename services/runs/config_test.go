package runs

import (
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

func parse(t *testing.T, env map[string]string, args ...string) (Config, error) {
	t.Helper()
	for name, value := range env {
		t.Setenv(name, value)
	}
	var cfg Config
	parser, err := kong.New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(args)
	return cfg, err
}

func TestAConfigurationIsReadFromFlagsAndEnvironment(t *testing.T) {
	flags, err := parse(t, nil, "--listen=:1", "--metrics-listen=:2", "--kubeconfig=k", "--identity-keys-dir=d",
		"--results-url=https://relay:1/x", "--results-token-file=t", "--results-ca-file=c", "--wait=4s", "--testkube-url=http://t:1", "--testkube-ca-file=tc",
		"--seal-key=s", "--redis-cache=redis://r:1", "--redis-time=1s", "--cache-bytes=2", "--plain-bytes=3", "--send-bytes=90000000", "--fill-time=4s", "--no-warm")
	if err != nil {
		t.Fatal(err)
	}
	env, err := parse(t, map[string]string{
		"LISTEN": ":1", "METRICS_LISTEN": ":2", "KUBECONFIG": "k", "IDENTITY_KEYS_DIR": "d",
		"RESULTS_URL": "https://relay:1/x", "RESULTS_TOKEN_FILE": "t", "RESULTS_CA_FILE": "c", "RUNS_WAIT": "4s", "TESTKUBE_URL": "http://t:1", "TESTKUBE_CA_FILE": "tc",
		"SEAL_KEY_FILE": "s", "REDIS_CACHE_URL": "redis://r:1", "REDIS_CACHE_TIME": "1s", "RUNS_CACHE_BYTES": "2", "RUNS_PLAIN_BYTES": "3", "RUNS_SEND_BYTES": "90000000",
		"RUNS_FILL_TIME": "4s", "RUNS_WARM": "false",
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(flags, env); diff != "" || flags.ResultsTLS.CAFile != "c" || flags.Wait != 4*time.Second {
		t.Errorf("flags give %+v, the environment differs:\n%s", flags, diff)
	}
}

func TestAllFaultsOfAConfigurationAreToldAtOnce(t *testing.T) {
	_, err := parse(t, nil, "--listen=", "--metrics-listen=", "--results-url=relay:1", "--results-cert-file=c", "--wait=-1s",
		"--redis-cache=http://r", "--redis-time=0s", "--cache-bytes=0", "--plain-bytes=0", "--send-bytes=80000000", "--fill-time=91s", "--testkube-url=t:1", "--testkube-key-file=k")
	if err == nil {
		t.Fatal("it is taken")
	}
	for _, want := range []string{
		"--listen is missing", "--metrics-listen is missing", "--identity-keys-dir is missing", "--results-url: it is not", "the TLS of --results-url: cert-file", "--wait",
		"--seal-key is missing", "--redis-cache", "--redis-time", "--cache-bytes", "--plain-bytes", "--send-bytes", "--fill-time", "--testkube-url: it is not", "the TLS of --testkube-url: cert-file and key-file",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %s in %v", want, err)
		}
	}
}

func TestAPasswordInAnAddressIsNotShown(t *testing.T) {
	_, err := parse(t, nil, "--identity-keys-dir=d", "--results-url=http://relay:hunter2@host:1")
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

// A pod of 512 MiB has room for all that may be held, and for its garbage.
func TestWhatIsHeldByDefaultIsWellBelowThePod(t *testing.T) {
	cfg, err := parse(t, nil, "--identity-keys-dir=d", "--seal-key=s", "--results-url=http://r")
	if err != nil || cfg.MemoryLimit() != 232<<20 {
		t.Errorf("%d MiB, %v", cfg.MemoryLimit()>>20, err)
	}
}
