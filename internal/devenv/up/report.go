package up

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// message is what the supervisor tells the Up that started it, a line each, through a pipe.
type message struct {
	Progress string `json:"progress,omitempty"`
	Error    string `json:"error,omitempty"` // the last message, when the start failed
	Ready    bool   `json:"ready,omitempty"` // the last message, when it did not
}

// reporter writes messages until it is closed, or until nobody reads any more. It may be used concurrently.
type reporter struct {
	mu   sync.Mutex
	pipe io.WriteCloser
}

func (r *reporter) send(m message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pipe == nil {
		return
	}
	if err := json.NewEncoder(r.pipe).Encode(m); err != nil {
		_ = r.pipe.Close() // whoever asked is gone; the gateway is started all the same
		r.pipe = nil
	}
}

func (r *reporter) progress(line string) { r.send(message{Progress: line}) }

func (r *reporter) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pipe != nil {
		_ = r.pipe.Close()
		r.pipe = nil
	}
}

// follow hands on the progress until the supervisor says how the start ended.
func follow(pipe io.Reader, progress func(string), log string) error {
	messages := json.NewDecoder(pipe)
	for {
		var m message
		err := messages.Decode(&m)
		switch {
		case errors.Is(err, io.EOF):
			return fmt.Errorf("the supervisor ended while it was starting the gateway: see %s", log)
		case err != nil:
			return fmt.Errorf("listening to the supervisor: %w", err)
		case m.Error != "":
			return errors.New(m.Error)
		case m.Ready:
			return nil
		default:
			progress(m.Progress)
		}
	}
}

// pipeFD is where the supervisor finds the pipe: the first file after standard error.
const pipeFD = 3

func inheritedPipe() io.WriteCloser { return os.NewFile(pipeFD, "progress") }
