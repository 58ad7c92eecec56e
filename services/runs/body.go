package runs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"hangar.io/glidepath/internal/kubelist"
)

// encode gives a row's JSON. Text stays readable: nobody puts it into HTML.
func (r row) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("writing a run: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// writeFull writes a run with its objects, as they were archived but for
// managedFields.
func writeFull(w io.Writer, r run, tasks []task) error {
	head, err := r.row.encode()
	if err != nil {
		return err
	}
	out := &body{w: w}
	out.write(bytes.TrimSuffix(head, []byte("}")))
	out.text(`,"pipelineRun":`)
	out.object(r.record.Value)
	out.text(`,"taskRuns":[`)
	for i, t := range tasks {
		if i > 0 {
			out.text(",")
		}
		out.object(t.record.Value)
	}
	out.text("]}")
	return out.err
}

// body writes JSON piece by piece. Past its first error it writes nothing.
type body struct {
	w   io.Writer
	err error
}

func (b *body) write(p []byte) {
	if b.err == nil {
		_, b.err = b.w.Write(p)
	}
}

func (b *body) text(s string) { b.write([]byte(s)) }

func (b *body) object(raw []byte) {
	if b.err != nil {
		return
	}
	shown, err := kubelist.WithoutManagedFields(raw)
	if err != nil {
		b.err = fmt.Errorf("reading an archived object: %w", err)
		return
	}
	b.write(shown)
}
