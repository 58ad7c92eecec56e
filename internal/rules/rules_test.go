package rules

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const header = "id\tarea\tsection\toperation\trule\tcheck\n"

func TestRead(t *testing.T) {
	t.Parallel()
	got, err := Read(strings.NewReader(header + "R001\tauthz\tErrors\t-\tIt holds.\tTry it.\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Rule{{ID: "R001", Area: "authz", Section: "Errors", Operation: "-", Text: "It holds.", Check: "Try it."}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules differ (-want +got):\n%s", diff)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ input, want string }{
		"an empty file":          {"", "rule list is empty"},
		"another header":         {"id\tarea\n", `starts with "id\tarea"`},
		"a missing column":       {header + "R001\tauthz\tErrors\t-\tIt holds.\n", "line 2: 5 columns, want 6"},
		"an empty column":        {header + "R001\tauthz\tErrors\t-\t \tTry it.\n", "line 2: column rule is empty"},
		"an id of another form":  {header + "R1\tauthz\tErrors\t-\tIt holds.\tTry it.\n", `id "R1" is not R and three digits`},
		"an area of two words":   {header + "R001\tthe edge\tErrors\t-\tIt holds.\tTry it.\n", `area "the edge" is not one`},
		"an id that comes twice": {header + strings.Repeat("R001\tauthz\tErrors\t-\tIt holds.\tTry it.\n", 2), "line 3: R001 is already on line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Read(strings.NewReader(test.input))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestReadReportsEveryFaultyLine(t *testing.T) {
	t.Parallel()
	list, err := Read(strings.NewReader(header + "one\nR002\tauthz\tErrors\t-\tIt holds.\tTry it.\ntwo\n"))
	if err == nil || !strings.Contains(err.Error(), "line 2:") || !strings.Contains(err.Error(), "line 4:") {
		t.Errorf("got error %v, want lines 2 and 4 in it", err)
	}
	if len(list) != 1 || list[0].ID != "R002" {
		t.Errorf("got %v, want the sound rule alone", list)
	}
}

func TestReadDoneIgnoresCommentsAndBlanks(t *testing.T) {
	t.Parallel()
	got, err := ReadDone(strings.NewReader("# finished\n\nauthz\n  gateway  \n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"authz", "gateway"}, got); diff != "" {
		t.Errorf("areas differ (-want +got):\n%s", diff)
	}
}
