package explain

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// minWord is the shortest literal that is looked for: shorter ones stand in
	// too many lines.
	minWord = 3
	// maxWords bounds the literals of one pattern.
	maxWords = 64
)

// required gives literals in lower case, of which every text that matches holds
// at least one, whatever its case; nil when there are none of use. Letters are
// those of ASCII: (?i) also takes the long s and the sign of Kelvin, which no
// tool prints.
func required(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		return usable([]string{strings.ToLower(string(re.Rune))})
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if found := required(sub); better(found, best) {
				best = found
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			found := required(sub)
			if found == nil {
				return nil
			}
			all = append(all, found...)
		}
		return usable(all)
	default:
	}
	return nil
}

// usable gives the literals, each once, or nil when one of them is of no use.
func usable(literals []string) []string {
	slices.Sort(literals)
	literals = slices.Compact(literals)
	if len(literals) > maxWords {
		return nil
	}
	for _, l := range literals {
		// The lower case of other letters may be of another length, and lines
		// are made lower byte by byte.
		if len(l) < minWord || strings.ContainsFunc(l, func(r rune) bool { return r >= utf8.RuneSelf }) {
			return nil
		}
	}
	return literals
}

// better prefers the literals of which the shortest is longest: lines that hold
// it are the rarest.
func better(a, b []string) bool {
	if a == nil || b == nil {
		return a != nil
	}
	shortest := func(l []string) int { return len(slices.MinFunc(l, func(x, y string) int { return len(x) - len(y) })) }
	return shortest(a) > shortest(b)
}

// lower makes the letters of ASCII lower, into the same memory where it fits.
func lower(into, line []byte) []byte {
	into = append(into[:0], line...)
	for i, b := range into {
		if 'A' <= b && b <= 'Z' {
			into[i] = b + 'a' - 'A'
		}
	}
	return into
}
