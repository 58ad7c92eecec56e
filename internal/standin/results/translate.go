package results

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// translate turns a checked expression into what the SQL made of it does. It
// fails with errSQL where that SQL is wrong whatever the rows, and otherwise with
// the refusal of what cannot be translated.
func translate(e ast.Expr) (expr, error) {
	switch e.Kind() {
	case ast.LiteralKind:
		return literal(e.AsLiteral().Value())
	case ast.IdentKind:
		return column(e.AsIdent())
	case ast.SelectKind:
		if e.AsSelect().IsTestOnly() {
			return expr{}, errSQL // has()
		}
		return field(e)
	case ast.CallKind:
		return call(e)
	default:
		return expr{}, unsupported(e)
	}
}

func unsupported(e ast.Expr) error { return fmt.Errorf("unsupported CEL: kind %d", e.Kind()) }

// literal pastes a value into the SQL, as the real server does: unescaped.
func literal(v any) (expr, error) {
	switch v := v.(type) {
	case string:
		if strings.Contains(v, "'") {
			return expr{}, errSQL
		}
		return constant(textValue(v)), nil
	case bool:
		return constant(sqlValue{kind: sqlBool, truth: v}), nil
	case int64:
		return constant(sqlValue{kind: sqlNumber, number: float64(v)}), nil
	case uint64:
		return constant(sqlValue{kind: sqlNumber, number: float64(v)}), nil
	case float64:
		return constant(sqlValue{kind: sqlNumber, number: v}), nil
	default:
		return constant(sqlValue{kind: sqlText, null: true}), nil
	}
}

// column is a variable by itself.
func column(name string) (expr, error) {
	text := func(get func(*row) string) (expr, error) {
		return expr{sqlText, func(d *decoded) (sqlValue, error) { return textValue(get(d.row)), nil }}, nil
	}
	at := func(get func(*row) time.Time) (expr, error) {
		return expr{sqlTime, func(d *decoded) (sqlValue, error) { return sqlValue{kind: sqlTime, time: get(d.row)}, nil }}, nil
	}
	switch name {
	case "parent":
		return text(func(r *row) string { return r.parent })
	case "result_name":
		return text(func(r *row) string { return r.result })
	case "name":
		return text(func(r *row) string { return r.name })
	case "data_type":
		return text(func(r *row) string { return r.kind })
	case "uid":
		return text(func(r *row) string { return r.uid })
	case "create_time":
		return at(func(r *row) time.Time { return r.created })
	case "update_time":
		return at(func(r *row) time.Time { return r.updated })
	}
	if value, ok := constants[name]; ok {
		return literal(value)
	}
	return expr{}, fmt.Errorf("%s: not recognized field", name)
}

// field is a path into data, summary or annotations.
func field(e ast.Expr) (expr, error) {
	root, path, err := steps(e)
	if err != nil {
		return expr{}, err
	}
	switch {
	case root == "data" && len(path) > 1:
		return expr{sqlText, func(d *decoded) (sqlValue, error) { return maybeText(d.text(path)), nil }}, nil
	case root == "annotations" && len(path) == 1:
		return expr{sqlText, func(d *decoded) (sqlValue, error) {
			if text, ok := d.row.annotations[path[0]]; ok {
				return textValue(text), nil
			}
			return maybeText(nil), nil
		}}, nil
	case root == "summary":
		return summaryField(path)
	default:
		return expr{}, fmt.Errorf("%s: not recognized field", root)
	}
}

// steps takes a path apart: data.status.conditions[0].reason.
func steps(e ast.Expr) (root string, path []string, err error) {
	switch {
	case e.Kind() == ast.IdentKind:
		return e.AsIdent(), nil, nil
	case e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly():
		root, path, err = steps(e.AsSelect().Operand())
		return root, append(path, e.AsSelect().FieldName()), err
	case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Index:
		args := e.AsCall().Args()
		if args[1].Kind() != ast.LiteralKind {
			return "", nil, unsupported(e)
		}
		root, path, err = steps(args[0])
		switch key := args[1].AsLiteral().Value().(type) {
		case string:
			return root, append(path, key), err
		case int64:
			return root, append(path, strconv.FormatInt(key, 10)), err
		}
	}
	return "", nil, unsupported(e)
}

func summaryField(path []string) (expr, error) {
	get := func(f func(*Summary) string) func(d *decoded) *string {
		return func(d *decoded) *string {
			if d.row.summary == nil {
				return nil
			}
			if text := f(d.row.summary); text != "" {
				return &text
			}
			return nil
		}
	}
	text := func(f func(*Summary) string) expr {
		return expr{sqlText, func(d *decoded) (sqlValue, error) { return maybeText(get(f)(d)), nil }}
	}
	switch strings.Join(path, ".") {
	case "record":
		return text(func(s *Summary) string { return s.Record }), nil
	case "type":
		return text(func(s *Summary) string { return s.Type }), nil
	case "status":
		return text(func(s *Summary) string { return s.Status }), nil
	case "start_time":
		return cast(text(func(s *Summary) string { return s.StartTime }))
	case "end_time":
		return cast(text(func(s *Summary) string { return s.EndTime }))
	}
	if len(path) == 2 && path[0] == "annotations" {
		return text(func(s *Summary) string { return s.Annotations[path[1]] }), nil
	}
	return expr{}, fmt.Errorf("summary.%s: not recognized field", strings.Join(path, "."))
}

// call is an operator or a function.
func call(e ast.Expr) (expr, error) {
	c := e.AsCall()
	if c.FunctionName() == operators.Index {
		return field(e)
	}
	if c.FunctionName() == operators.In {
		return inList(c)
	}
	nodes := c.Args()
	if c.IsMemberFunction() {
		nodes = append([]ast.Expr{c.Target()}, nodes...)
	}
	args := make([]expr, len(nodes))
	for i, n := range nodes {
		var err error
		if args[i], err = translate(n); err != nil {
			return expr{}, err
		}
	}
	switch name := c.FunctionName(); name {
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return compare(name, args[0], args[1])
	case operators.LogicalAnd, operators.LogicalOr:
		return logic(name == operators.LogicalAnd, args)
	case operators.LogicalNot:
		return not(args[0])
	case operators.Add:
		return concat(args[0], args[1])
	case "timestamp":
		return cast(args[0])
	case "contains", "startsWith", "endsWith", "matches":
		return match(name, args[0], args[1])
	case "getFullYear", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear":
		return extract(name, args)
	default:
		return expr{}, fmt.Errorf("unsupported CEL: unsupported function %s", name)
	}
}

// inList is x in [a, b].
func inList(c ast.CallExpr) (expr, error) {
	if c.Args()[1].Kind() != ast.ListKind {
		return expr{}, unsupported(c.Args()[1])
	}
	left, err := translate(c.Args()[0])
	if err != nil {
		return expr{}, err
	}
	var any []expr
	for _, element := range c.Args()[1].AsList().Elements() {
		right, err := translate(element)
		if err != nil {
			return expr{}, err
		}
		equal, err := compare(operators.Equals, left, right)
		if err != nil {
			return expr{}, err
		}
		any = append(any, equal)
	}
	if len(any) == 0 {
		return expr{}, errSQL // IN () is no SQL
	}
	return logic(false, any)
}
