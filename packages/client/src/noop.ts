/** Does nothing. One shared function, since a process may hold thousands of clients. */
export const noop = (): void => {}
