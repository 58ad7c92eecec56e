package process

import "os"

// inherited is what a process gets of this program's environment. The rest stays out: whoever has sourced a demo.env, or
// runs tests inside a pod, must not configure the processes by accident.
func inherited() []string {
	var env []string
	for _, name := range []string{
		"PATH", "HOME", "TMPDIR", "LANG", "TZ", "GOMAXPROCS", "GODEBUG", "GORACE", "GOCOVERDIR", "GOTRACEBACK",
	} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
