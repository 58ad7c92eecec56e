package livehub

import (
	"sync"

	"hangar.io/glidepath/internal/answer"
	"hangar.io/glidepath/internal/kubelist"
)

// maxAnswers bounds the answers that are kept of one list. Pollers ask for the
// same few.
const maxAnswers = 32

// snapshot is a list as it was at one moment, and the answers made of it: all
// callers within its two seconds get the same bytes, which are hashed and
// compressed once. It is safe for concurrent use.
type snapshot struct {
	list *kubelist.List

	mu      sync.Mutex
	answers map[form]*answer.Answer
}

// form says which answer of a snapshot is meant.
type form struct {
	op    string
	with  *snapshot // another list in the same answer
	limit int       // of a page, 0 for the whole
	after string    // the continue token that led to the page
}

func newSnapshot(l *kubelist.List) *snapshot {
	return &snapshot{list: l, answers: map[form]*answer.Answer{}}
}

// answer gives the answer of a form, which build makes if it is not there yet.
func (s *snapshot) answer(f form, build func() (*answer.Answer, error)) (*answer.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a, ok := s.answers[f]; ok {
		return a, nil
	}
	a, err := build()
	if err != nil {
		return nil, err
	}
	if len(s.answers) < maxAnswers {
		s.answers[f] = a
	}
	return a, nil
}

// codec keeps snapshots in the cache: the list, without its answers.
type codec struct{}

func (codec) Encode(s *snapshot) ([]byte, error) { return s.list.Encode(), nil }

func (codec) Decode(raw []byte) (*snapshot, error) {
	l, err := kubelist.Decode(raw)
	if err != nil {
		return nil, err
	}
	return newSnapshot(l), nil
}

func (codec) Size(s *snapshot) int { return s.list.Size() }
