// Package mutate is the computation of admission. The agent repeats it with the same functions, so
// that it does not have to trust a stored document.
//
// [Desire] computes the desired state from spec and learned values: steps 1 and 2 of the Krake
// documentation, Application controller, "Reconciliation loop". [PrepareForCreate] and [PrepareForUpdate] treat a ConfigMap as if it had a
// status subresource. A user's request never sets status. The status of webhook and agents comes
// from the stored object.
//
//	prepared := mutate.PrepareForCreate(ctx.Err, cm) // cm now has the status documents
//
// A refusal names the place and the way out:
//
//	data.spec.observer_schema[0].spec.type: Invalid value: Value of 'type' is not null: an observed value is written as null
//
// The package is pure.
package mutate
