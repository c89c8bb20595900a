/** Whether a reply says that the word is not in `4lw.commands.whitelist`. */
export const isNotWhitelisted = (text: string): boolean =>
  text.includes('is not executed because it is not in the whitelist')

/** Whether a reply says that the server is not serving, for example during an election. */
export const isNotServing = (text: string): boolean => text.includes('is not currently serving requests')
