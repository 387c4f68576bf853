package web

// Text is how pages show what a stranger chose.
func Text(s string) string { return text(s) }
