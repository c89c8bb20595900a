import { ManualClock } from '@zabra/runtime'
import { expect, it } from 'vitest'
import type { Member } from '../../ensemble/member.ts'
import { TestServer } from '../../testing/test-server.ts'
import { TreeSurvey } from './tree-survey.ts'

it('a survey of the tree reports the 50 largest first path elements and the rest, a minute apart', async () => {
  const { fixture, client } = await TestServer.withClient()
  for (let i = 10; i < 70; i++) client.create(i, `/n${i}`, 0, 'x'.repeat(i))
  client.create(70, '/n10/large', 0, 'x'.repeat(1000))
  client.create(71, '/n11/a')
  client.create(72, '/n11/b')
  await fixture.untilIdle()
  const clock = new ManualClock()
  const survey = new TreeSurvey(clock)
  const { tree } = (fixture.server as Member).service!
  survey.refresh(tree)
  expect(survey.report).toBeUndefined()
  await clock.untilIdle()
  const { namespaces, largestNodeBytes, mostChildren } = survey.report!
  expect(namespaces).toHaveLength(51)
  expect(namespaces[0]).toEqual(['/n10', { nodes: 2, bytes: 10 + 4 + 1000 + '/n10/large'.length }])
  expect(namespaces.at(-1)![0]).toBe('other')
  expect(namespaces.reduce((sum, [, { nodes }]) => sum + nodes, 0)).toBe(tree.nodeCount - 1)
  expect([largestNodeBytes, mostChildren]).toEqual([1000, 61])
  client.delete(73, '/n10/large')
  await fixture.untilIdle()
  survey.refresh(tree)
  await clock.untilIdle()
  expect(survey.report!.largestNodeBytes).toBe(1000)
  clock.advance(60_000)
  survey.refresh(tree)
  await clock.untilIdle()
  expect(survey.report!.largestNodeBytes).toBe(69)
  await fixture.stop()
})
