package feed

import (
	"fmt"
	"strconv"

	"hangar.io/glidepath/internal/sse"
)

// change is one change of one object, written down for viewers. It does not
// change any more.
type change struct {
	kind Kind
	// version is the resourceVersion at which it is known to have happened.
	// Those of one kind are published in its order.
	version uint64
	// before is the version of the change of this kind that was published
	// before this one: between the two there was none.
	before uint64
	// was and is are the sums of the kind before the change and after it. Whoever
	// knows anything else before has missed something, or is shown this by one that
	// has, and is shown everything anew.
	was, is uint64
	// at is where a viewer is that has seen it. In the middle of what a list
	// brought that is where it was before the list: some of what the list
	// brought happened earlier than what stands before it.
	at Position
	// repair marks a change that the cluster kept from us: also those who
	// should have seen it have not.
	repair bool
	// frame is the event; its first body bytes are the id.
	frame []byte
	body  int
}

// overheadBytes is roughly what a change takes besides its frame.
const overheadBytes = 160

func sizeOf(c *change) int { return cap(c.frame) + overheadBytes }

// write writes a change down. object is empty for one that is gone.
func write(tag string, kind Kind, name string, object []byte, at Position) ([]byte, int, error) {
	frame := make([]byte, 0, len(object)+len(name)+192)
	frame = sse.AppendID(frame, at.id(tag))
	body := len(frame)
	frame, err := appendBody(frame, kind, name, object)
	return frame, body, err
}

// writeBody writes a change down without an id.
func writeBody(kind Kind, name string, object []byte) ([]byte, error) {
	return appendBody(make([]byte, 0, len(object)+len(name)+128), kind, name, object)
}

func appendBody(frame []byte, kind Kind, name string, object []byte) ([]byte, error) {
	data := make([]byte, 0, len(object)+len(name)+96)
	if len(object) > 0 {
		data = append(data, `{"type":"upsert","kind":"`...)
	} else {
		data = append(data, `{"type":"delete","kind":"`...)
	}
	data = append(append(data, kindNames[kind]...), `","name":`...)
	data = strconv.AppendQuote(data, name) // a DNS name: nothing in it is quoted another way
	if len(object) > 0 {
		data = append(append(data, `,"object":`...), object...)
	}
	data = append(data, '}')
	frame, err := sse.Event{Type: "change", Data: data}.Append(frame)
	if err != nil {
		return nil, fmt.Errorf("writing a change: %w", err)
	}
	return frame, nil
}

var kindNames = [kindCount]string{PipelineRuns: "PipelineRun", TaskRuns: "TaskRun"}

// rewritten is the frame for a viewer that is elsewhere than the others.
func (c *change) rewritten(tag string, at Position) []byte {
	id := sse.AppendID(make([]byte, 0, len(c.frame)+16), at.id(tag))
	return append(id, c.frame[c.body:]...)
}
