package explain

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/coregx/ahocorasick"
	"golang.org/x/sync/semaphore"
)

// KnownFailure is a failure that has a name.
type KnownFailure struct {
	ID    string `json:"id"`
	Hint  string `json:"hint"`
	Field string `json:"field,omitempty"`
}

// known is a failure of the contract.
type known struct {
	KnownFailure

	Patterns []string `json:"patterns"`
}

// Catalogue is the contract's known failures, in its order, ready to be held
// against lines. It is safe for concurrent use.
type Catalogue struct {
	failures []KnownFailure
	patterns []pattern
	// words finds the literals in a line in lower case; nil when there is none.
	words *ahocorasick.Automaton
	// byWord gives the patterns that a literal is of, ascending.
	byWord [][]int
	// wordless are the patterns that every line is held against, ascending.
	wordless []int
	// maxLog is the longest log that is read, in bytes; maxTested how many bytes
	// of one regular expressions are held against.
	maxLog, maxTested int64
	// turns bounds the logs that are read at once.
	turns *semaphore.Weighted
}

// pattern is one of a failure's. Patterns ascend as their failures do.
type pattern struct {
	expression *regexp.Regexp
	failure    int // index into failures
}

// FromContract compiles the known failures of a contract, as getContract serves
// it. An error names every failure that is not sound.
func FromContract(contract []byte) (*Catalogue, error) {
	var c struct {
		KnownFailures []known `json:"knownFailures"`
	}
	if err := json.Unmarshal(contract, &c); err != nil {
		return nil, fmt.Errorf("reading the contract: %w", err)
	}
	catalogue, err := compile(c.KnownFailures)
	if err != nil {
		return nil, fmt.Errorf("compiling the contract's known failures: %w", err)
	}
	return catalogue, nil
}

func compile(failures []known) (*Catalogue, error) {
	var faults []error
	c := &Catalogue{maxLog: maxLog, maxTested: maxTested, turns: semaphore.NewWeighted(logsAtOnce)}
	words := map[string]int{}
	seen := map[string]bool{}
	for _, f := range failures {
		if f.ID == "" || len(f.Patterns) == 0 || seen[f.ID] {
			faults = append(faults, fmt.Errorf("%q: it has no id, no pattern, or the id of another", f.ID))
		}
		seen[f.ID] = true
		for _, expression := range f.Patterns {
			if err := c.add(expression, words); err != nil {
				faults = append(faults, fmt.Errorf("%s: pattern %q: %w", f.ID, expression, err))
			}
		}
		c.failures = append(c.failures, f.KnownFailure)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return c, nil
	}
	inOrder := make([]string, len(words))
	for word, i := range words {
		inOrder[i] = word
	}
	var err error
	if c.words, err = ahocorasick.NewBuilder().AddStrings(inOrder).Build(); err != nil {
		return nil, fmt.Errorf("the words of the patterns: %w", err)
	}
	return c, nil
}

// add compiles a pattern of the failure that comes next.
func (c *Catalogue) add(expression string, words map[string]int) error {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return err
	}
	compiled, err := regexp.Compile(expression)
	if err != nil {
		return err
	}
	if compiled.MatchString("") {
		return errors.New("it matches every line")
	}
	i := len(c.patterns)
	c.patterns = append(c.patterns, pattern{expression: compiled, failure: len(c.failures)})
	literals := required(parsed.Simplify())
	if literals == nil {
		c.wordless = append(c.wordless, i)
	}
	for _, word := range literals {
		at, ok := words[word]
		if !ok {
			at = len(c.byWord)
			words[word] = at
			c.byWord = append(c.byWord, nil)
		}
		c.byWord[at] = append(c.byWord[at], i)
	}
	return nil
}
