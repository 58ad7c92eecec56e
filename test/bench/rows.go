package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"hangar.io/glidepath/test/bench/figures"
)

// Group is rows that come out of the same runs. To add a row, write its measure and name it in groups.
type Group struct {
	// Rows are the names of the figures, as the design's targets call them.
	Rows []string
	// What says in one sentence what the rows are.
	What string
	// measure gives the figures of the rows, and what belongs to them, such as their noise. Its errors end the bench: a
	// figure of runs in which something failed says nothing.
	measure func(context.Context, *World) ([]figures.Figure, error)
}

// Groups are all rows, in the order in which they are measured.
func Groups() []Group {
	return []Group{
		{[]string{rowCachedRatio, rowCheckCPU}, "32 connections of cached reads against a check that allows everything", measureThroughput},
		{[]string{rowCachedAdded}, "one connection of cached reads against a check that allows everything", measureLatency},
		{[]string{rowReviewRatio}, "writes against a bare client that makes the same two reviews", measureReviews},
		{[]string{rowForgedReviews, rowForgedWriter, rowForgedReader}, "a thousand forged tokens a second, and a writer and a reader meanwhile", measureForged},
		{[]string{rowRevokedRead}, "callers that lose their right or their token while they read", measureRevoked},
		{[]string{rowRevokedStream}, "callers that lose their right or their token while they have a stream open", measureRevokedStreams},
		{[]string{rowListPlain, rowListGzip, rowListNotModified}, "a cached list of 1 MB against the same bytes from a static handler", measureLists},
		{[]string{rowLiveChange, rowLiveUpstreams}, "200 viewers of 20 changes a second, by streams, by watches of their own and by polling", measureLive},
		{[]string{rowLiveBusy}, "1,000 viewers of changes", measureLiveBusy},
		{[]string{rowLiveResume}, "viewers that come back 2,000 changes later", measureLiveResume},
		{[]string{rowLiveStream, rowLiveStreamEnvoy}, "10,000 streams that nothing happens on", measureLiveIdle},
		{[]string{rowRunsPlain, rowRunsGzip, rowRunsNotModified, rowRunsHitP50, rowRunsHitP99}, "a cached list of archived runs of 1 MB against the same bytes from a static handler", measureRunsLists},
		{[]string{rowColdReads}, "50 callers at once of a list of archived runs that nobody has", measureColdReads},
		{[]string{rowExplain}, "why a run failed whose step has a log of 10 MB", measureExplain},
		{[]string{rowColdHeap, rowRunsRSS}, "a thousand archived runs with their TaskRuns that nobody has", measureColdHeap},
		{[]string{rowPolicyInForce}, "from a change of the policy file until calls are treated by it", measurePolicy},
		{[]string{rowReady}, "from the start of the gateway's own processes until a call is answered", measureReady},
	}
}

// choose gives the groups that hold one of the named rows; without names all of them.
func choose(groups []Group, names []string) ([]Group, error) {
	if len(names) == 0 {
		return groups, nil
	}
	unknown := slices.Clone(names)
	var chosen []Group
	for _, g := range groups {
		asked := slices.ContainsFunc(g.Rows, func(row string) bool { return slices.Contains(names, row) })
		if asked {
			chosen = append(chosen, g)
		}
		unknown = slices.DeleteFunc(unknown, func(name string) bool { return slices.Contains(g.Rows, name) })
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("no row is called %s; `bench --list` names all", strings.Join(unknown, ", "))
	}
	return chosen, nil
}

// Options say what to measure.
type Options struct {
	// Rows are the rows to measure; none means all. Rows of one group come together.
	Rows []string
	// Dir is for the files of all parts. Its caller removes it.
	Dir string
	// Quick makes the runs as few and as short as they can be: it shows that a row can be measured, not what it is.
	Quick bool
	// Race builds the gateway with the race detector.
	Race bool
	// Progress is told what is being done.
	Progress func(line string)
}

// Run measures rows and writes each figure to out as a line "name value". It takes minutes.
func Run(ctx context.Context, o Options, out io.Writer) error {
	chosen, err := choose(Groups(), o.Rows)
	if err != nil {
		return err
	}
	w, err := start(ctx, o)
	if err != nil {
		return err
	}
	defer w.stop()
	for _, g := range chosen {
		o.Progress(strings.Join(g.Rows, ", ") + ": " + g.What)
		lines, err := g.measure(ctx, w)
		if err != nil {
			return fmt.Errorf("measuring %s: %w", g.Rows[0], err)
		}
		for _, l := range lines {
			if _, err := fmt.Fprintln(out, l); err != nil {
				return fmt.Errorf("writing a figure: %w", err)
			}
		}
	}
	return nil
}
