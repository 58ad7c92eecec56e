package rules

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// columns are the header of docs/rules.tsv, in order.
var columns = []string{"id", "area", "section", "operation", "rule", "check"}

var (
	idPattern   = regexp.MustCompile(`^R[0-9]{3}$`)
	areaPattern = regexp.MustCompile(`^[a-z]+$`)
)

// Rule is one row of docs/rules.tsv.
type Rule struct {
	// ID names the rule in tests, for example "R045".
	ID string
	// Area is the part of the product that keeps the rule, for example "authz".
	Area string
	// Section is the chapter of the specification that states it.
	Section string
	// Operation is the operationId concerned, or "-" for more than one.
	Operation string
	// Text says what must hold, Check how a test would show it.
	Text, Check string
}

// Read parses a rule list in the format of docs/rules.tsv: tab-separated, a
// header line, one rule a line. It reports every faulty line, not only the first.
func Read(r io.Reader) ([]Rule, error) {
	lines := bufio.NewScanner(r)
	if !lines.Scan() {
		return nil, errors.Join(errors.New("rule list is empty"), lines.Err())
	}
	if header := strings.Join(columns, "\t"); lines.Text() != header {
		return nil, fmt.Errorf("rule list starts with %q, want %q", lines.Text(), header)
	}

	var (
		list   []Rule
		faults []error
		seen   = map[string]int{}
	)
	for number := 2; lines.Scan(); number++ {
		rule, err := parse(lines.Text())
		if err == nil && seen[rule.ID] != 0 {
			err = fmt.Errorf("%s is already on line %d", rule.ID, seen[rule.ID])
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", number, err))
			continue
		}
		seen[rule.ID] = number
		list = append(list, rule)
	}
	if err := lines.Err(); err != nil {
		faults = append(faults, fmt.Errorf("reading the rule list: %w", err))
	}
	return list, errors.Join(faults...)
}

func parse(line string) (Rule, error) {
	fields := strings.Split(line, "\t")
	if len(fields) != len(columns) {
		return Rule{}, fmt.Errorf("%d columns, want %d", len(fields), len(columns))
	}
	for i, field := range fields {
		if strings.TrimSpace(field) == "" {
			return Rule{}, fmt.Errorf("column %s is empty", columns[i])
		}
	}
	if !idPattern.MatchString(fields[0]) {
		return Rule{}, fmt.Errorf("id %q is not R and three digits", fields[0])
	}
	if !areaPattern.MatchString(fields[1]) {
		return Rule{}, fmt.Errorf("area %q is not one lower-case word", fields[1])
	}
	return Rule{
		ID: fields[0], Area: fields[1], Section: fields[2],
		Operation: fields[3], Text: fields[4], Check: fields[5],
	}, nil
}

// ReadDone parses the list of finished areas: one a line, blank lines and lines
// that start with "#" ignored.
func ReadDone(r io.Reader) ([]string, error) {
	var areas []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		areas = append(areas, line)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the finished areas: %w", err)
	}
	return areas, nil
}
