package runs

import (
	"fmt"
	"net/http"
	"time"
)

const (
	// stall is how long a caller may take nothing of an answer.
	stall = 20 * time.Second
	// sentPiece is how much of an answer a caller must take in that time.
	sentPiece = 64 << 10
)

// patient answers a caller who may be slow, but may not stop: it would hold the
// answer, or its turn, for as long as it likes.
type patient struct {
	http.ResponseWriter

	control *http.ResponseController
}

func newPatient(w http.ResponseWriter) *patient {
	return &patient{w, http.NewResponseController(w)}
}

// Write sends the next bytes, each piece of them within the time.
func (p *patient) Write(b []byte) (int, error) {
	sent := 0
	for len(b) > 0 {
		if err := p.control.SetWriteDeadline(time.Now().Add(stall)); err != nil {
			return sent, fmt.Errorf("bounding a write: %w", err)
		}
		n, err := p.ResponseWriter.Write(b[:min(len(b), sentPiece)])
		sent += n
		if err != nil {
			return sent, fmt.Errorf("writing an answer: %w", err)
		}
		b = b[n:]
	}
	return sent, nil
}

// end sends what the server still holds of the answer, within the time too.
func (p *patient) end() error {
	if err := p.control.Flush(); err != nil {
		return fmt.Errorf("writing an answer: %w", err)
	}
	// The connection may serve another call, which has its own.
	if err := p.control.SetWriteDeadline(time.Time{}); err != nil {
		return fmt.Errorf("unbounding a write: %w", err)
	}
	return nil
}
