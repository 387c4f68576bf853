package auth

import "slices"

// Plan names the limits of a workspace. What the limits are is data of the write
// path (create.Plans), which an operator may change.
type Plan string

// The plans.
const (
	PlanAnonymous  Plan = "anonymous"  // callers without a key, each by network
	PlanFree       Plan = "free"       // somebody who signed up
	PlanVerified   Plan = "verified"   // somebody whom the operator knows
	PlanRegistered Plan = "registered" // a customer; what a new workspace gets
	PlanDefault    Plan = "default"    // the operator's own: no limits unless set
)

// Plans lists every plan.
func Plans() []Plan {
	return []Plan{PlanAnonymous, PlanFree, PlanVerified, PlanRegistered, PlanDefault}
}

// Valid reports whether a workspace may have the plan.
func (p Plan) Valid() bool { return p != PlanAnonymous && slices.Contains(Plans(), p) }
