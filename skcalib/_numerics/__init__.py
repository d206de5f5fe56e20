"""Pure functions, arrays in and arrays out: no checks, no state, no generators of their own."""
