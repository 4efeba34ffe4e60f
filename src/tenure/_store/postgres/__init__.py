"""The PostgreSQL store. All SQL that Tenure sends lives here, one statement per file in sql/."""
