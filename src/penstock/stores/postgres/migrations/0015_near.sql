-- phase: expand
-- breaking: no
--
-- A lane or pool that nobody made is refused with names that are near, and with how to see and to make one.

-- Up to three of the known names that look like this one, best first: by what they share of their letters and pairs of
-- letters, once each, capitals aside. A letter too many, too few or two that changed places leave most of them.
CREATE FUNCTION penstock.near(name text, known text[]) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH pieces AS (
    SELECT DISTINCT w.word, substr(' ' || lower(w.word) || ' ', place, size) AS piece
      FROM (SELECT near.name UNION SELECT unnest(known)) AS w (word),
           generate_series(1, length(w.word) + 1) AS place, generate_series(1, 2) AS size
  ), sizes AS (
    SELECT p.word, count(*) AS total FROM pieces AS p GROUP BY p.word
  ), alike AS (
    SELECT p.word, count(*) AS shared FROM pieces AS p JOIN pieces AS mine USING (piece)
     WHERE mine.word = near.name AND p.word <> near.name GROUP BY p.word
  )
  SELECT ARRAY(
    SELECT a.word FROM alike AS a JOIN sizes AS s USING (word), sizes AS mine
     WHERE mine.word = near.name AND 2.0 * a.shared / (s.total + mine.total) > 0.6
     ORDER BY 2.0 * a.shared / (s.total + mine.total) DESC, a.word LIMIT 3)
$$;

-- As before, but for what is unknown: `unknown lane "biling"; did you mean billing?`, and a hint.
CREATE OR REPLACE FUNCTION penstock.refuse_job(field text, problem text, code text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  known text[];
  near text;
BEGIN
  IF code <> 'foreign_key_violation' THEN
    RAISE EXCEPTION USING ERRCODE = code, SCHEMA = 'penstock', TABLE = 'enqueue', COLUMN = field,
      MESSAGE = 'penstock: ' || problem;
  ELSIF field = 'lane' THEN
    known := ARRAY(SELECT l.name FROM penstock.lanes AS l);
  ELSE
    known := ARRAY(SELECT p.name FROM penstock.pools AS p);
  END IF;
  near := array_to_string(penstock.near(substring(problem FROM '"(.*)"'), known), ', ');
  RAISE EXCEPTION USING ERRCODE = code, SCHEMA = 'penstock', TABLE = 'enqueue', COLUMN = field,
    MESSAGE = 'penstock: ' || problem || CASE WHEN near = '' THEN '' ELSE format('; did you mean %s?', near) END,
    HINT = format('SELECT name FROM penstock.%1$ss shows those there are, penstock %1$ss set NAME --create makes one.', field);
END $$;
