import { readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { expect, it } from 'vitest'
import { sourceFiles } from './sources.ts'

/**
 * Words of class names that every developer of databases on Node knows. A word that only this project uses with a
 * meaning belongs into docs/glossary.md; better still, rename the class.
 */
const USUAL_WORDS = words(`
  buffer bulk byte channel check child chunk client clock columns configuration connection context
  counter cursor descendant disk driver error executor field file first generator handlers id immediate index
  link linked list loader logger manager map order part path pipe policy port progress queue random read reader receiver
  registry request ring rules run scheduler server setting splitter state store stream sum table tracker
  window write
  naive partitions raw recording simulated simulation test
`)

const root = resolve(import.meta.dirname, '..')
const glossary = readFileSync(join(root, 'docs/glossary.md'), 'utf8')
const rows = [...glossary.matchAll(/^\| (?!term |---)(.*?) \| (.*?) \| (.*?) ?\|$/gm)].map(
  ([, names, meaning]) => ({ names: names!, meaning: meaning! }),
)
/** Terms of the first column, each as its words: `pending node, pending tree` gives two. */
const terms = rows.flatMap(({ names }) =>
  names
    .replace(/ \(.*\)/, '')
    .split(', ')
    .map((term) => words(term.replaceAll('-', ' '))),
)
/** Class names that a row explains, in code font. */
const explained = new Set(
  rows.flatMap(({ names, meaning }) =>
    [...`${names} ${meaning}`.matchAll(/`((?:[A-Z][a-z]+)+)`/g)].map(([, name]) => name!),
  ),
)

const sources = sourceFiles(root).map((file) => ({
  file: relative(root, file),
  text: readFileSync(file, 'utf8'),
}))
const classes = sources
  .filter(({ file }) => /^packages\/server\/src\/(core|ensemble|pipeline|database)\//.test(file))
  .flatMap(({ file, text }) =>
    [...text.matchAll(/^(?:export )?(?:default )?(?:abstract )?class (\w+)/gm)].map(([, name]) => ({
      file,
      name: name!,
    })),
  )

/** Splits text into lower-case words, in the singular where they end with s. */
function words(text: string): string[] {
  return text
    .trim()
    .split(/\s+/)
    .map((word) => singular(word.toLowerCase()))
}

function singular(word: string): string {
  return /[^s]s$/.test(word) ? word.slice(0, -1) : word
}

/** Returns whether the words are a sequence of usual words and whole terms. */
function isCovered(name: readonly string[]): boolean {
  if (name.length === 0) return true
  if (USUAL_WORDS.includes(name[0]!) && isCovered(name.slice(1))) return true
  return terms.some(
    (term) => term.every((word, index) => word === name[index]) && isCovered(name.slice(term.length)),
  )
}

const wordsOf = (name: string): string[] => words(name.replace(/(?<=[a-z])(?=[A-Z])/g, ' '))

it('explains each class name of the server, as a whole or by its words', () => {
  const unexplained = classes
    .filter(({ name }) => !explained.has(name) && !isCovered(wordsOf(name)))
    .map(({ file, name }) => `${file}: ${name} is neither in docs/glossary.md nor made of usual words`)
  expect(unexplained).toEqual([])
})

it('names only classes that exist', () => {
  const declared = new Set(
    sources.flatMap(({ text }) =>
      [...text.matchAll(/^(?:export )?(?:default )?(?:abstract )?(?:class|interface) (\w+)/gm)].map(
        ([, name]) => name!,
      ),
    ),
  )
  expect([...explained].filter((name) => !declared.has(name))).toEqual([])
})

it('has each term once, and not among the usual words', () => {
  const single = terms.map((term) => term.join(' '))
  expect(single.filter((term, index) => single.indexOf(term) !== index)).toEqual([])
  expect(single.filter((term) => USUAL_WORDS.includes(term))).toEqual([])
})

it('lists no usual word that no class name has', () => {
  const used = new Set(classes.flatMap(({ name }) => wordsOf(name)))
  expect(USUAL_WORDS.filter((word) => !used.has(word))).toEqual([])
})
