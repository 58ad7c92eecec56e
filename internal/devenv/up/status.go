package up

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// ErrNotRunning is returned by Status when there is no gateway.
var ErrNotRunning = errors.New("no gateway is running: `make up` starts one")

// Status prints what runs where.
func Status(opts Options) error {
	f := folder(opts.Dir)
	st, running, err := f.read()
	switch {
	case err != nil:
		return err
	case !running:
		return ErrNotRunning
	case !st.Ready:
		_, _ = fmt.Fprintln(opts.Out, "The gateway is being started.")
		return nil
	}
	return f.table(opts.Out)
}

// table lists the processes.
func (f folder) table(out io.Writer) error {
	entries, err := f.entries()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "PROCESS\tPID\tADDRESSES")
	for _, e := range entries {
		_, _ = fmt.Fprintf(table, "%s\t%d\t%s\n", e.Name, e.PID, strings.Join(e.Addresses, " "))
	}
	return table.Flush()
}

const commands = `
Paste this:

  . %[1]s
  curl -sw '\n' -H "Authorization: Bearer $TOKEN_READER" "$GLIDEPATH_URL/v1/whoami"
  curl -sw '\n' -H "Authorization: Bearer $TOKEN_READER" "$GLIDEPATH_URL/v1/apps/shop/live"
  curl -sw '\n' -H "Authorization: Bearer $TOKEN_READER" "$GLIDEPATH_URL/v1/live?limit=2"
  curl -siw '\n' -H "Authorization: Bearer $TOKEN_STRANGER" "$GLIDEPATH_URL/v1/apps/shop/live"
  curl -sw '\n' -H "Authorization: Bearer $TOKEN_READER" "$GLIDEPATH_PEOPLE_URL/v1/whoami"  # the way in for people
  curl -sw '\n' -H "Authorization: Bearer $ID_TOKEN_PERSON" "$GLIDEPATH_PEOPLE_URL/v1/whoami"  # a person
  tail -n 3 "$AUDIT_LOG"

The logs are in %[2]s. Stop it all with: make down
To sign in as a person: (set -a; . %[1]s; go run ./cmd/glidepath login)
`

// summary says what runs where and how to use it.
func (f folder) summary(out io.Writer) error {
	if err := f.table(out); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, commands, quote(f.env()), f.gateway())
	return err
}
