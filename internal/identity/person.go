package identity

import "strings"

// PersonPrefix starts the user name of every person. Only the verification of a
// person's own ID token gives such a name.
const PersonPrefix = "people:"

// FoldPerson gives one name for all spellings of a person, for what denies or
// bounds people: logins differ in case from one provider to the next, a delegate
// may say the prefix or not, and one spelling must not get by another.
func FoldPerson(name string) string {
	return strings.TrimPrefix(strings.ToLower(name), PersonPrefix)
}
