package explain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"hangar.io/glidepath/services/runs/tekton"
)

// What became of a TaskRun's log.
const (
	LogArchived = "archived"
	LogMissing  = "missing"
)

// ErrNoLog is what a [Logs] gives when nothing was archived.
var ErrNoLog = errors.New("no log was archived")

// Logs gives the archived log of the TaskRun with a UID, or [ErrNoLog]. Reading
// what it gives fails when the log could not be read to its end.
type Logs func(ctx context.Context, uid string) (io.ReadCloser, error)

// Entry is why one TaskRun failed.
type Entry struct {
	TaskRun string `json:"taskRun"`
	Task    string `json:"task"`
	// Step is empty when no step exited non-zero, as when none had begun.
	Step string `json:"step,omitempty"`
	// KnownFailure is nil when nothing matched.
	KnownFailure *KnownFailure `json:"knownFailure"`
	// Evidence is the line that matched, or else the step's last lines, or the
	// condition's message where there are none of those.
	Evidence string `json:"evidence,omitempty"`
	// Log is LogArchived or LogMissing.
	Log string `json:"log"`
	// Note says what was left out of the reading; empty: nothing was. What is
	// said besides then holds for the rest.
	Note string `json:"note,omitempty"`
}

// A log that is made to be slow takes a processor for seconds. A catalogue holds
// logsAtOnce logs against its failures at the same time, of which logsOfOne are of
// one call, whose others do not wait in front of those of another call.
const (
	logsAtOnce = 4
	logsOfOne  = 2
)

// Explain explains the failed ones of the TaskRuns, in the order in which they
// began. The others' logs are not read. A log that cannot be read is an error:
// that nothing matched means that all was read, but for what a note says. Logs wait
// their turn, in order, until ctx ends.
func (c *Catalogue) Explain(ctx context.Context, taskRuns []*tekton.Object, logs Logs) ([]Entry, error) {
	toExplain := slices.DeleteFunc(slices.Clone(taskRuns), func(tr *tekton.Object) bool { return !tr.Outcome().Failed() })
	slices.SortStableFunc(toExplain, byStart)
	entries := make([]Entry, len(toExplain))
	reading, ctx := errgroup.WithContext(ctx)
	reading.SetLimit(logsOfOne)
	for i, tr := range toExplain {
		reading.Go(func() error {
			var err error
			entries[i], err = c.one(ctx, tr, logs)
			return err
		})
	}
	if err := reading.Wait(); err != nil {
		return nil, err
	}
	return entries, nil
}

func (c *Catalogue) one(ctx context.Context, tr *tekton.Object, logs Logs) (Entry, error) {
	entry := Entry{TaskRun: tr.Metadata.Name, Task: tr.Task(), Step: failedStep(tr), Log: LogArchived}
	reader := c.reader(steps(tr), entry.Step)
	err := c.read(ctx, tr.Metadata.UID, logs, reader)
	if errors.Is(err, ErrNoLog) {
		entry.Log = LogMissing
	} else if err != nil {
		return Entry{}, fmt.Errorf("the log of %s: %w", tr.Metadata.Name, err)
	}
	message := tr.Ended().Message
	reader.message(message)
	entry.KnownFailure, entry.Note = reader.matcher.found(), reader.note()
	switch last := reader.last(); {
	case entry.KnownFailure != nil:
		entry.Evidence = reader.matcher.line
	case last != "":
		entry.Evidence = last
	default:
		entry.Evidence = excerpt([]byte(message))
	}
	return entry, nil
}

// read reads the log of the TaskRun with a UID, in its turn.
func (c *Catalogue) read(ctx context.Context, uid string, logs Logs, reader *logReader) error {
	if err := c.turns.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("waiting for other logs: %w", err)
	}
	defer c.turns.Release(1)
	log, err := logs(ctx, uid)
	if err != nil {
		return err
	}
	err = eachLine(log, c.maxLog, reader.line)
	_ = log.Close() // it was read, or does not count
	if errors.Is(err, errTooLong) {
		reader.cut = true
		return nil
	}
	return err
}

// logReader holds the lines of one step against the catalogue.
type logReader struct {
	catalogue *Catalogue
	sections  *sections
	step      string
	matcher   *matcher
	tail      *tail
	cut       bool // the log is longer than what is read
}

func (c *Catalogue) reader(steps []string, step string) *logReader {
	return &logReader{catalogue: c, sections: newSections(steps), step: step, matcher: c.matcher(), tail: &tail{}}
}

// line takes a line of the log, whosever it is. Without a step that failed no
// line is held against anything; the last ones still say how far it came.
func (r *logReader) line(line []byte, continued bool) {
	marked := r.sections.marked
	step, text := r.sections.line(line, continued)
	if r.sections.marked && !marked {
		// What came before was of containers that are no steps: the marking is
		// that of the log's first line.
		r.matcher, r.tail = r.catalogue.matcher(), &tail{}
	}
	if r.step != "" && r.sections.marked && step != r.step {
		return
	}
	text = clean(text)
	r.tail.add(text)
	if r.step != "" {
		r.matcher.test(text)
	}
}

// message takes the message of the TaskRun's condition, which is tested whatever
// the log was made for.
func (r *logReader) message(text string) {
	r.matcher.tested = 0
	for line := range bytes.SplitSeq([]byte(text), []byte("\n")) {
		r.matcher.test(clean(line))
	}
}

// last gives the last lines, "" where nobody knows them.
func (r *logReader) last() string {
	if r.cut {
		return ""
	}
	return r.tail.String()
}

// note says what was left out.
func (r *logReader) note() string {
	var left []string
	if r.cut {
		left = append(left, fmt.Sprintf("the log is longer than %d MiB, and was read that far", r.catalogue.maxLog>>20))
	}
	if r.matcher.skipped {
		left = append(left, "not all lines were held against all known failures, as too many come near one")
	}
	return strings.Join(left, "; ")
}
