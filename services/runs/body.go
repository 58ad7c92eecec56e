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

const tasksFollow = `,"taskRuns":[`

// writeRows writes a list of runs without their objects.
func writeRows(w io.Writer, runs []listed) error {
	out := &body{w: w}
	out.text(`{"runs":[`)
	for i, r := range runs {
		out.comma(i)
		out.write(r.row.encode())
	}
	out.text("]}")
	return out.err
}

// writeFullRows writes a list of runs with their objects, one after the other.
func writeFullRows(w io.Writer, runs []listed) error {
	out := &body{w: w}
	out.text(`{"runs":[`)
	for i, r := range runs {
		out.comma(i)
		out.listed(r)
		runs[i] = listed{} // what is written needs no memory
	}
	out.text("]}")
	return out.err
}

// writeListed writes one run with its objects, as a full list does.
func writeListed(w io.Writer, r listed) error {
	out := &body{w: w}
	out.listed(r)
	return out.err
}

// body writes JSON piece by piece. Past its first error it writes nothing.
type body struct {
	w      io.Writer
	err    error
	buffer []byte // of objects that are unpacked
}

// openFull begins a run that goes on with its PipelineRun.
func (b *body) openFull(r row) {
	head, err := r.encode()
	b.write(bytes.TrimSuffix(head, []byte("}")), err)
	b.text(`,"pipelineRun":`)
}

// listed writes a run of a full list.
func (b *body) listed(r listed) {
	b.openFull(r.row)
	b.packed(r.run)
	b.text(tasksFollow)
	for n, t := range r.tasks {
		b.comma(n)
		b.packed(t.object)
	}
	b.text("]}")
}

func (b *body) write(p []byte, err error) {
	if b.err == nil {
		b.err = err
	}
	if b.err == nil {
		_, b.err = b.w.Write(p)
	}
}

func (b *body) text(s string) { b.write([]byte(s), nil) }

// comma stands before every element of an array but the first.
func (b *body) comma(index int) {
	if index > 0 {
		b.text(",")
	}
}

// object writes an object as it was archived, but for managedFields.
func (b *body) object(raw []byte) {
	shown, err := kubelist.WithoutManagedFields(raw)
	if err != nil {
		err = fmt.Errorf("reading an archived object: %w", err)
	}
	b.write(shown, err)
}

// packed writes an object that waited for its turn.
func (b *body) packed(p packed) {
	raw, err := p.unpack(b.buffer)
	if err != nil {
		b.write(nil, err)
		return
	}
	b.buffer = raw[:cap(raw)]
	b.object(raw)
}
