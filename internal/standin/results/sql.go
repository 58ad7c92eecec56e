package results

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"cel.dev/cel-go/common/operators"
)

// sqlKind is the type of an expression in SQL.
type sqlKind int

const (
	sqlText sqlKind = iota
	sqlBool
	sqlNumber
	sqlTime
)

// sqlValue is a value of one row. NULL is of every type.
type sqlValue struct {
	kind   sqlKind
	null   bool
	text   string
	truth  bool
	number float64
	time   time.Time
}

// expr is an expression of a known type.
type expr struct {
	kind sqlKind
	eval func(*decoded) (sqlValue, error)
}

func textValue(s string) sqlValue { return sqlValue{kind: sqlText, text: s} }

func maybeText(s *string) sqlValue {
	if s == nil {
		return sqlValue{kind: sqlText, null: true}
	}
	return textValue(*s)
}

func constant(v sqlValue) expr {
	return expr{v.kind, func(*decoded) (sqlValue, error) { return v, nil }}
}

// compare compares two values of one type. A text is cast where the other side is
// a time; any other mixture is an error of the SQL.
func compare(operator string, left, right expr) (expr, error) {
	var err error
	switch {
	case left.kind == sqlTime && right.kind == sqlText:
		right, err = cast(right)
	case left.kind == sqlText && right.kind == sqlTime:
		left, err = cast(left)
	case left.kind != right.kind:
		err = errSQL
	}
	if err != nil {
		return expr{}, err
	}
	return expr{sqlBool, func(d *decoded) (sqlValue, error) {
		l, err := left.eval(d)
		if err != nil {
			return l, err
		}
		r, err := right.eval(d)
		if err != nil || l.null || r.null {
			return sqlValue{kind: sqlBool, null: true}, err
		}
		return sqlValue{kind: sqlBool, truth: holds(operator, order(l, r))}, nil
	}}, nil
}

func order(l, r sqlValue) int {
	switch l.kind {
	case sqlTime:
		return l.time.Compare(r.time)
	case sqlNumber:
		return cmp.Compare(l.number, r.number)
	case sqlBool:
		return cmp.Compare(rank(l.truth), rank(r.truth))
	default:
		return strings.Compare(l.text, r.text)
	}
}

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

func holds(operator string, order int) bool {
	switch operator {
	case operators.Equals:
		return order == 0
	case operators.NotEquals:
		return order != 0
	case operators.Less:
		return order < 0
	case operators.LessEquals:
		return order <= 0
	case operators.Greater:
		return order > 0
	default:
		return order >= 0
	}
}

// logic is AND or OR with SQL's third truth value.
func logic(and bool, args []expr) (expr, error) {
	for _, a := range args {
		if a.kind != sqlBool {
			return expr{}, errSQL
		}
	}
	return expr{sqlBool, func(d *decoded) (sqlValue, error) {
		unknown := false
		for _, a := range args {
			v, err := a.eval(d)
			switch {
			case err != nil:
				return v, err
			case v.null:
				unknown = true
			case v.truth != and:
				return v, nil
			}
		}
		return sqlValue{kind: sqlBool, null: unknown, truth: and}, nil
	}}, nil
}

func not(arg expr) (expr, error) {
	if arg.kind != sqlBool {
		return expr{}, errSQL
	}
	return expr{sqlBool, func(d *decoded) (sqlValue, error) {
		v, err := arg.eval(d)
		v.truth = !v.truth
		return v, err
	}}, nil
}

func concat(left, right expr) (expr, error) {
	if left.kind != sqlText || right.kind != sqlText {
		return expr{}, errSQL
	}
	return both(left, right, sqlText, func(l, r sqlValue) sqlValue { return textValue(l.text + r.text) }), nil
}

// both evaluates two sides; NULL on one is NULL.
func both(left, right expr, kind sqlKind, f func(l, r sqlValue) sqlValue) expr {
	return expr{kind, func(d *decoded) (sqlValue, error) {
		l, err := left.eval(d)
		if err != nil {
			return l, err
		}
		r, err := right.eval(d)
		if err != nil || l.null || r.null {
			return sqlValue{kind: kind, null: true}, err
		}
		return f(l, r), nil
	}}
}

// cast makes a time of a text. One text among the rows that is no time fails the
// whole list.
func cast(arg expr) (expr, error) {
	if arg.kind == sqlTime {
		return arg, nil
	}
	if arg.kind != sqlText {
		return expr{}, errSQL
	}
	return expr{sqlTime, func(d *decoded) (sqlValue, error) {
		v, err := arg.eval(d)
		if err != nil || v.null {
			return sqlValue{kind: sqlTime, null: true}, err
		}
		t, err := time.Parse(time.RFC3339Nano, v.text)
		if err != nil {
			return sqlValue{kind: sqlTime, null: true}, errSQL
		}
		return sqlValue{kind: sqlTime, time: t}, nil
	}}, nil
}

// match is one of the functions that search a text. In startsWith and endsWith
// the wildcards of LIKE are wildcards; a regular expression is unanchored.
func match(function string, left, right expr) (expr, error) {
	if left.kind != sqlText || right.kind != sqlText {
		return expr{}, errSQL
	}
	pattern, err := right.eval(&decoded{row: &row{}})
	if err != nil || pattern.null {
		return expr{}, errSQL
	}
	like := strings.NewReplacer("%", ".*", "_", ".").Replace(regexp.QuoteMeta(pattern.text))
	text := map[string]string{
		"contains": regexp.QuoteMeta(pattern.text), "matches": pattern.text, "startsWith": "^" + like, "endsWith": like + "$",
	}[function]
	re, err := regexp.Compile("(?s:" + text + ")")
	if err != nil {
		return expr{}, errSQL
	}
	return expr{sqlBool, func(d *decoded) (sqlValue, error) {
		v, err := left.eval(d)
		return sqlValue{kind: sqlBool, null: v.null, truth: re.MatchString(v.text)}, err
	}}, nil
}

// extract is a part of a time.
func extract(function string, args []expr) (expr, error) {
	if len(args) != 1 {
		return expr{}, errSQL // with a time zone
	}
	at, err := cast(args[0])
	if err != nil {
		return expr{}, err
	}
	return expr{sqlNumber, func(d *decoded) (sqlValue, error) {
		v, err := at.eval(d)
		t := v.time.UTC()
		n := map[string]int{
			"getFullYear": t.Year(), "getDate": t.Day(), "getDayOfMonth": t.Day() - 1, "getDayOfWeek": int(t.Weekday()), "getDayOfYear": t.YearDay() - 1,
		}[function]
		return sqlValue{kind: sqlNumber, null: v.null, number: float64(n)}, err
	}}, nil
}
