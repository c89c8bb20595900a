/** Returns a thrown value if it is an error, and otherwise an error with its text. */
export const errorOf = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error(String(thrown))
