/** Hides the hashes of passwords in identities, and users with passwords in URLs: a value that is refused goes to the log. */
export const hideSecrets = (value: string): string =>
  value.replace(/(digest:[^:,\s]*:)[^,\s"]+/g, '$1(not shown)').replace(/(:\/\/)[^/\s"]*@/g, '$1(not shown)@')
