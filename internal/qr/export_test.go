package qr

// Occupy takes the turn, until the function that it returns is called.
func (d *Drawer) Occupy() (release func()) {
	d.turn <- struct{}{}
	return func() { <-d.turn }
}
