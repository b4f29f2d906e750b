// Package admission says which objects are accepted and which are not, and why.
//
// The rules are pure functions over objects of api/v1alpha1. The webhook asks
// them before an object is stored, and the controllers ask them again, so that
// an object that was stored without the webhook is refused with the same words.
//
// A finding names the field and the reason, and tells the way out where the
// reason alone does not. What programs of others match on stands in it word by
// word. Nothing that a rule reads is quoted if it could be a credential.
//
// The functions called Validate… return what forbids the object; those called
// …Warnings return what is allowed and still likely to be a slip.
package admission
