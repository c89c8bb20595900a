/** What operators ask: the four-letter words. */
export { FourLetterWords } from './words.ts'
export type { Word } from './words.ts'
