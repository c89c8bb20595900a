import { readFileSync, readdirSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { expect, it } from 'vitest'
import { sourceFiles } from './sources.ts'

const root = resolve(import.meta.dirname, '..')
const folder = join(root, 'docs/spec')

/** What each page of docs/spec defines: section numbers, `invariant N`, `HN`. */
const defined = new Map(
  readdirSync(folder)
    .filter((name) => name.endsWith('.md') && name !== 'README.md')
    .map((name) => [name.slice(0, -'.md'.length), definitionsOf(readFileSync(join(folder, name), 'utf8'))]),
)

const pages = [...defined.keys()].join('|')
const item = '(?:invariants? \\d+|H\\d+|\\d+(?:\\.\\d+)?b?)'
/** A page and one or more of its items, as in `quorum-protocol 9.5, H2 and H3`. */
const reference = new RegExp(`\\b(${pages}) (${item}(?:(?:, and |, | and | to )(?:${item}|\\d+))*)`, 'g')
/** A section, an invariant or a hazard without the page that defines it. */
const bare = /\(\d{1,2}\.\d{1,2}[,)]|\binvariants? \d+|\bH\d\b/g

function definitionsOf(page: string): ReadonlySet<string> {
  const found = new Set<string>()
  for (const [, number] of page.matchAll(/^#{2,4} (\d+(?:\.\d+)?b?)\.? /gm)) found.add(number!)
  for (const [, hazard] of page.matchAll(/^\| (H\d+) \|/gm)) found.add(hazard!)
  const invariants = /^## \d+\. Safety invariants[^]*?(?=^## )/m.exec(page)?.[0] ?? ''
  for (const [, number] of invariants.matchAll(/^ ?(\d+)\. /gm)) found.add(`invariant ${number}`)
  return found
}

function comments(text: string): { line: number; comment: string }[] {
  return text.split('\n').flatMap((content, index) => {
    const comment = /^\s*(?:\/\*\*?|\*)(.*)|(?:^|\s)\/\/(.*)/.exec(content)
    return comment === null ? [] : [{ line: index + 1, comment: comment[1] ?? comment[2] ?? '' }]
  })
}

const allComments = sourceFiles(root).flatMap((file) =>
  comments(readFileSync(file, 'utf8')).map(({ line, comment }) => ({
    where: `${relative(root, file)}:${line}`,
    comment,
  })),
)

/** Splits `invariants 15 and 16` into `invariant 15`, `invariant 16`, and `9.5, H2` into `9.5`, `H2`. */
function itemsOf(list: string): string[] {
  let isInvariant = false
  return list.split(/, and |, | and | to /).map((text) => {
    if (text.startsWith('invariant')) isInvariant = true
    else if (/[.H]/.test(text)) isInvariant = false
    return isInvariant ? text.replace(/^(?:invariants? )?/, 'invariant ') : text
  })
}

it('resolves every reference of a comment to a section of docs/spec', () => {
  const unresolved = allComments.flatMap(({ where, comment }) =>
    [...comment.matchAll(reference)].flatMap(([, page, list]) =>
      itemsOf(list!)
        .filter((section) => !defined.get(page!)!.has(section))
        .map((section) => `${where} refers to ${page} ${section}, which docs/spec does not define`),
    ),
  )
  expect(unresolved).toEqual([])
})

it('finds no reference that leaves out its page', () => {
  const incomplete = allComments.flatMap(({ where, comment }) =>
    [...comment.replace(reference, '').matchAll(bare)].map(
      ([text]) => `${where} refers to ${text}: write the page too, as in quorum-protocol 10.3`,
    ),
  )
  expect(incomplete).toEqual([])
})
