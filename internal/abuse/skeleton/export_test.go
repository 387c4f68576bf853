package skeleton

// Shapes returns what a text looks like before pairs of letters are joined: found anew, and
// as remembered.
func ShapesOf(text string) (anew, remembered string) {
	var s Shapes
	s.Append(nil, []byte(text))
	return string(AppendShapes(nil, text)), string(s.Append(nil, []byte(text)))
}
