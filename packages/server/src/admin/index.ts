/** What operators ask: the four-letter words. */
export { FourLetterWords } from './words.ts'
export type { Word } from './words.ts'
export type { LeaderFigures, MemberConf, MemberFigures, RoleFigures } from './role-figures.ts'
