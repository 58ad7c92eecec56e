package fleet

// Person is somebody who calls the gateway with an ID token.
type Person struct {
	// Login is the name at GitHub, UserID the account there, Does what the person may do here.
	Login, UserID, Does string
	// Allowed says whether the gateway lets the person in.
	Allowed bool
}

// Logins of the sample people.
const (
	PersonReader   = "ada-reads"   // allowed, and a reader of every app
	PersonOperator = "grace-ships" // allowed, and a reader, an operator and a releaser of every app
	PersonNew      = "new-here"    // allowed, with no right
	PersonStranger = "mallory-out" // not allowed
)

// People returns the sample people, in a fixed order.
func People() []Person {
	return []Person{
		{Login: PersonReader, UserID: "1001", Does: "reads", Allowed: true},
		{Login: PersonOperator, UserID: "1002", Does: "reads, re-runs, cancels, promotes, rolls back", Allowed: true},
		{Login: PersonNew, UserID: "1003", Does: "may sign in, has no right", Allowed: true},
		{Login: PersonStranger, UserID: "1004", Does: "may not sign in"},
	}
}

// AllowedUsers is authz's list of those who may sign in. The operator's entry is tied to the account, as those of people who
// may write should be.
func AllowedUsers() []string {
	var list []string
	for _, p := range People() {
		switch {
		case !p.Allowed:
		case p.Login == PersonOperator:
			list = append(list, p.Login+":id="+p.UserID)
		default:
			list = append(list, p.Login)
		}
	}
	return list
}
