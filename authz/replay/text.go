package replay

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"hangar.io/glidepath/internal/terminal"
)

// Text is the report for people.
func (r *Report) Text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d calls in %d lines, %d of them decided again.\n", r.Calls, r.Lines, r.Judged)
	r.differences(&out, "Allowed then, refused now", true)
	r.differences(&out, "Refused then, allowed now", false)
	if len(r.Differences) == 0 {
		out.WriteString("\nNone of them would be decided otherwise.\n")
	}
	undecided(&out, "Not known", r.Unknown)
	undecided(&out, "Not a matter of rights", r.Unaffected)
	if r.Malformed > 0 {
		fmt.Fprintf(&out, "\nNot readable (%d lines)\n", r.Malformed)
		for _, m := range r.MalformedLines {
			fmt.Fprintf(&out, "  %s %s\n", terminal.Line(m.Line), terminal.Line(m.Why))
		}
	}
	return out.String()
}

func (r *Report) differences(out *strings.Builder, title string, allowed bool) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	begun := false
	for _, d := range r.Differences {
		if d.Was.Allowed != allowed {
			continue
		}
		if !begun {
			begun = true
			fmt.Fprintf(w, "\n%s\n  CALLER\tOPERATION\tAPP\tCALLS\tWAS\tNOW\n", title)
		}
		caller := d.Caller
		if d.Delegated {
			caller += " (for a person)"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%d\t%s\t%s\n", cell(caller), cell(d.Op), cell(d.App), d.Calls, cell(d.Was.String()), cell(d.Now.String()))
	}
	_ = w.Flush() // a strings.Builder takes everything
}

func undecided(out *strings.Builder, title string, list []Undecided) {
	if len(list) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%s\n  CALLS\tRULE\tCALLER\tOPERATION\tAPP\tWHY\n", title)
	for _, u := range list {
		fmt.Fprintf(w, "  %d\t%s\t%s\t%s\t%s\t%s\n", u.Calls, cell(u.Rule), cell(u.Caller), cell(u.Op), cell(u.App), cell(u.Why))
	}
	_ = w.Flush()
}

// String says the verdict in a word or a rule.
func (v Verdict) String() string {
	if v.Allowed {
		return "allowed"
	}
	return v.Rule
}

// cell gives the words of a line, which are quoted where they are not plain.
func cell(s string) string {
	if s == "" {
		return "-"
	}
	return terminal.Line(s)
}
