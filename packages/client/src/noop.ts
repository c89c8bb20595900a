/** What is done when there is nothing to do: one for all, since a process may hold thousands of clients. */
export const noop = (): void => {}
