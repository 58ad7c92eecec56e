package livehub

import (
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
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
	flags, err := parse(t, nil, "--listen=:1", "--metrics-listen=:2", "--kubeconfig=k", "--identity-keys-dir=d", "--seal-key=s",
		"--redis-cache=redis://r:1/0", "--redis-time=2s", "--list-time=5s", "--list-bytes=7", "--lists=3", "--wait=4s", "--cache-bytes=9",
		"--authz-renew-url=http://a:1,https://b:2", "--authz-renew-ca-file=c", "--streams-per-caller=5", "--streams-per-person=3")
	if err != nil {
		t.Fatal(err)
	}
	env, err := parse(t, map[string]string{
		"LISTEN": ":1", "METRICS_LISTEN": ":2", "KUBECONFIG": "k", "IDENTITY_KEYS_DIR": "d", "SEAL_KEY_FILE": "s",
		"REDIS_CACHE_URL": "redis://r:1/0", "REDIS_CACHE_TIME": "2s", "LIVE_LIST_TIME": "5s", "LIVE_LIST_BYTES": "7", "LIVE_LISTS": "3", "LIVE_WAIT": "4s", "LIVE_CACHE_BYTES": "9",
		"AUTHZ_RENEW_URL": "http://a:1,https://b:2", "AUTHZ_RENEW_CA_FILE": "c", "STREAMS_PER_CALLER": "5", "STREAMS_PER_PERSON": "3",
	})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(flags, env) || len(flags.Renewal.URLs) != 2 || flags.Renewal.TLS.CAFile != "c" || flags.Streams.Person != 3 || flags.Listen != ":1" || flags.CacheBytes != 9 || flags.Redis.URL != "redis://r:1/0" {
		t.Errorf("flags give %+v, the environment %+v", flags, env)
	}
}

func TestNoCallerMayTakeMoreThanHalfOfAReplica(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"the defaults":             {nil, ""},
		"half of both":             {[]string{"--streams-per-caller=20", "--max-logs=40", "--live-max-streams=40"}, ""},
		"more than half the logs":  {[]string{"--streams-per-caller=20", "--max-logs=39"}, "--max-logs"},
		"more than half the lives": {[]string{"--streams-per-caller=20", "--live-max-streams=39"}, "--live-max-streams"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, nil, append([]string{"--identity-keys-dir=d", "--seal-key=s"}, c.args...)...)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTheDefaultsNeedTheKeysAlone(t *testing.T) {
	if _, err := parse(t, nil, "--identity-keys-dir=d", "--seal-key=s"); err != nil {
		t.Error(err)
	}
}

func TestEveryFaultOfAConfigurationIsToldAtOnce(t *testing.T) {
	_, err := parse(t, nil, "--listen=", "--metrics-listen=", "--redis-cache=http://user:secret@x", "--list-time=91s", "--list-bytes=0",
		"--lists=-1", "--redis-time=0s", "--wait=0s", "--cache-bytes=0",
		"--authz-renew-url=http://user:secret@x/path", "--streams-per-person=0")
	if err == nil {
		t.Fatal("it is taken")
	}
	for _, want := range []string{
		"--listen", "--metrics-listen", "--identity-keys-dir", "--seal-key", "--redis-cache", "--redis-time", "--list-time", "--list-bytes", "--lists", "--wait", "--cache-bytes",
		"--authz-renew-url", "--streams-per-person",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not told", want)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the password is told: %v", err)
	}
}
