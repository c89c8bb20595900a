/** What a digest in an identity looks like, also where its scheme is misspelt: base64 of a SHA-1 or a longer hash. */
const HASH = /:[\w+/-]{27,}={1,2}/g

/**
 * Hides the hashes of passwords in identities, and users with passwords in URLs: a value that is refused goes to the log. Such a value may
 * have any form: a user has blanks, a password has slashes and ats, a URL has no scheme.
 */
export const hideSecrets = (value: string): string =>
  value
    .replace(/(digest:[^:,"]*:)[^,"]+/gi, '$1(not shown)')
    .replace(HASH, ':(not shown)')
    .replace(/(:\/\/).*@/gs, '$1(not shown)@')
    .replace(/^(?!\w+:\/\/|sasl:|x509:)[^,:]*:.*@/s, '(not shown)@')
